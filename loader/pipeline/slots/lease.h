/* lease.h - track who still uses the memory of a lent batch: the consumer and its tensors.
 *
 *   in the ring ──batch lent──▶ lent ──────────release──────────▶ in the ring
 *                                 │ the ring comes round to it while it is lent (on_lent GROW)
 *                                 ▼
 *                               kept ──release──▶ spare ──takes the place of another kept batch──▶ in the ring
 *
 * Each slot has one; on a device, each buffer does. `users` is for any thread, all else for the
 * consumer's.
 */
#ifndef STK_PIPELINE_LEASE_H
#define STK_PIPELINE_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STK_LEASE_RELEASED UINT32_C(0x80000000)
#define STK_LEASE_OUTLIVES UINT32_C(0x40000000) /* the loader was destroyed while it was lent */

struct stk_tensor;
struct stoker_field;

struct stk_lease;

/* A user of a batch is gone, but its stream recorded a graph just then, so that the end of its work
 * could not be marked: it counts as a user until that succeeds. api/lend/leases.h */
struct stk_unended {
    struct stk_unended *next;
    struct stk_lease *lease;
    void *stream;
    _Atomic bool *out; /* a tensor's: false once it has ended. Release; NULL = none */
};

struct stk_lease {
    /* Tensors out, and the two flags. acq_rel: what a deleter did precedes the next fill. */
    _Atomic uint32_t users;
    /* The batch last lent in it; relaxed: it changes only while no batch is lent. */
    _Atomic uint64_t turn;
    uint64_t shared_turn;        /* the last batch of which a tensor was made; UINT64_MAX = none */
    bool kept;                   /* a lent batch's, outside of the ring */
    uint8_t idle_epochs;         /* ends of epochs since this spare was used, at most 2 */
    struct stk_tensor *tensors;  /* fields, their offsets, ids: api/lend/dlpack.c */
    struct stoker_field *fields; /* the lent batch as the consumer sees it: api/outputs.h */
    struct stk_lease *next;      /* among those returned, or among the spares */
    struct stk_unended unended;  /* the consumer's own use of it */
};

static inline void stk_lease_init(struct stk_lease *lease)
{
    atomic_init(&lease->users, 0U);
    atomic_init(&lease->turn, UINT64_MAX);
    lease->shared_turn = UINT64_MAX;
}

static inline uint64_t stk_lease_turn(const struct stk_lease *lease)
{
    return atomic_load_explicit(&lease->turn, memory_order_relaxed);
}

/* Returns true if a tensor was made of the batch that is lent in it. */
static inline bool stk_lease_is_shared(const struct stk_lease *lease)
{
    return lease->shared_turn == stk_lease_turn(lease);
}

#endif
