/* loans.h - who has a batch: the consumer, and each tensor that was made of it.
 *
 *   lent ──tensor──▶ lent, n out ──release──▶ released, n out ──deleter, n times──▶ returned ──▶ free
 *                        └──deleter, n times──▶ lent ──release──▶ free
 *
 * There is a loan for each place that a batch may lie in: slots, or buffers on a device. A batch of which no
 * tensor was made costs its loan one look. Deleters come from any thread, and what they
 * return is taken back by the consumer: slots and buffers know no other.
 *
 * The loader's memory lives as long as one tensor is out: whoever is last, destroy or a
 * deleter, gives it back.
 */
#ifndef STK_LOANS_H
#define STK_LOANS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/dlpack.h>

struct stk_tensor; /* dlpack.c */

#define STK_LOAN_RELEASED UINT32_C(0x80000000)

struct stk_loan {
    _Atomic uint32_t state; /* tensors out, and STK_LOAN_RELEASED. acq_rel: what a deleter's thread
                               did with the memory is before it is refilled */
    uint64_t turn;          /* of the batch, once a tensor was made of it; the consumer's */
};

struct stk_loans {
    struct stk_loan *loans;
    struct stk_tensor *tensors; /* three per loan */
    uint32_t count;
    _Atomic bool
        returned; /* release by a deleter pairs with acquire in collect: look at the loans */
    _Atomic uint32_t out; /* tensors of all loans, and STK_LOAN_RELEASED once destroy was called */
    pthread_mutex_t lock; /* an event is passed from one stream to the next */
};

static inline struct stk_loan *stk_loan_of(const struct stk_loans *loans, uint64_t turn)
{
    return &loans->loans[turn % loans->count];
}

/* One loan for each place. 0 or STOKER_ENOMEM. */
int stk_loans_init(struct stk_loans *loans, uint32_t count);
void stk_loans_destroy(struct stk_loans *loans); /* all zero is allowed */

/* No batch will be lent any more. False: tensors are out, and the last deleter goes on. */
bool stk_loans_end(struct stk_loans *loans);

struct stoker_loader;

/* The consumer releases a batch of which tensors may be out: true = none is, and its place is to be
 * given back now. *rc: the device's answer. */
bool stk_loan_release(struct stoker_loader *loader, uint64_t turn, void *stream, int *rc);

/* Give the places back that deleters returned. */
void stk_loans_take_back(struct stoker_loader *loader);

static inline void stk_loans_collect(struct stk_loans *loans, struct stoker_loader *loader)
{
    if (atomic_load_explicit(&loans->returned, memory_order_relaxed))
        stk_loans_take_back(loader);
}

/* Whether any tensor is out. Once this says no, all that deleters did is to be seen. */
static inline bool stk_loans_any(const struct stk_loans *loans)
{
    return atomic_load_explicit(&loans->out, memory_order_acquire) != 0;
}

#endif
