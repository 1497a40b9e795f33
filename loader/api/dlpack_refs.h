/* dlpack_refs.h - counts the references to a batch: the consumer's, and one per DLPack tensor made from it.
 *
 *   lent ──tensor──▶ lent, n out ──release──▶ released, n out ──deleter, n times──▶ returned ──▶ free
 *                        └──deleter, n times──▶ lent ──release──▶ free
 *
 * There is one ref per slot, or per buffer on a device. A batch without tensors costs its ref one load. Deleters
 * run in any thread; the batches they return are released by the consumer's thread, which alone owns slots and buffers.
 *
 * The loader's memory lives as long as one tensor is out: destroy or the last deleter, whichever comes last,
 * calls last_out.
 */
#ifndef STK_API_DLPACK_REFS_H
#define STK_API_DLPACK_REFS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STK_DLPACK_RELEASED UINT32_C(0x80000000)

struct stk_dlpack_ref {
    /* Tensors out, and STK_DLPACK_RELEASED. acq_rel: a deleter's accesses precede the next fill. */
    _Atomic uint32_t state;
    uint64_t turn; /* the batch's, once it has a tensor; used by the consumer only */
};

/* What the refs ask of their owner. */
struct stk_dlpack_owner {
    void *self;
    /* A stream's work with the batch ends here. Any thread, one at a time. Returns 0 or an error. */
    int (*end_work)(void *self, uint64_t turn, void *stream);
    void (*give_back)(void *self, uint64_t turn); /* no reference is left. The consumer's thread */
    void (*last_out)(void *self); /* after stk_dlpack_refs_end() returned false. Any thread */
};

struct stk_dlpack_refs {
    struct stk_dlpack_ref *refs;
    uint32_t count;
    _Atomic bool returned; /* a deleter's release pairs with acquire in collect: look at the refs */
    _Atomic uint32_t out;  /* tensors of all refs, and STK_DLPACK_RELEASED after end */
    pthread_mutex_t lock;  /* held in end_work */
    struct stk_dlpack_owner owner;
};

static inline struct stk_dlpack_ref *stk_dlpack_ref_of(const struct stk_dlpack_refs *refs,
                                                       uint64_t turn)
{
    return &refs->refs[turn % refs->count];
}

/* One ref per slot or buffer. Returns 0 or STOKER_ENOMEM. */
int stk_dlpack_refs_init(struct stk_dlpack_refs *refs, uint32_t count,
                         const struct stk_dlpack_owner *owner);
void stk_dlpack_refs_destroy(struct stk_dlpack_refs *refs); /* all zero is allowed */

/* No batch will be lent any more. Returns false if tensors are out: their last deleter calls last_out. */
bool stk_dlpack_refs_end(struct stk_dlpack_refs *refs);

/* The consumer made a tensor of the batch. */
void stk_dlpack_refs_add(struct stk_dlpack_refs *refs, uint64_t turn);

/* A tensor of the batch is deleted. Any thread. The refs and their owner may no longer exist on return. */
void stk_dlpack_refs_drop(struct stk_dlpack_refs *refs, uint64_t turn);

/* End the work of one more stream with the batch. Any thread. Returns what the owner's end_work does. */
int stk_dlpack_refs_end_work(struct stk_dlpack_refs *refs, uint64_t turn, void *stream);

/* The consumer releases a batch. Returns true if no tensor is out: the caller then gives it back now. *rc: what
 * end_work returned. */
bool stk_dlpack_refs_release(struct stk_dlpack_refs *refs, uint64_t turn, void *stream, int *rc);

/* Give back the batches that deleters returned. The consumer's thread. */
void stk_dlpack_refs_give_back(struct stk_dlpack_refs *refs);

static inline void stk_dlpack_refs_collect(struct stk_dlpack_refs *refs)
{
    if (atomic_load_explicit(&refs->returned, memory_order_relaxed))
        stk_dlpack_refs_give_back(refs);
}

/* Returns true if any tensor is out. After false, all that deleters did is visible. */
static inline bool stk_dlpack_refs_any(const struct stk_dlpack_refs *refs)
{
    return atomic_load_explicit(&refs->out, memory_order_acquire) != 0;
}

#endif
