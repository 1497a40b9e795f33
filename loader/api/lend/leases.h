/* leases.h - counts the users of a lent batch: the consumer, and one per DLPack tensor made of it.
 *
 *   lent ──tensor──▶ lent, n out ──release──▶ released, n out ──deleter, n times──▶ returned ──▶ free
 *                        └──deleter, n times──▶ lent ──release──▶ free
 *
 * A batch without tensors costs its lease one load. Deleters run in any thread, and so may the
 * consumer's release if options.on_lent is WAIT or GROW. The batches they return lie in a list,
 * since slots and buffers have one owner, the consumer's thread. With WAIT and GROW in host memory
 * the owner is the thread that holds the mutex `turn`:
 *
 *   next()      locks it, gives back what is in the list, also while it waits, and unlocks it
 *   a release   puts the batch into the list; if the mutex is free it gives the list back at once,
 *               so that the workers need not wait for next(); if not, its holder does
 *
 * Otherwise the list waits for next().
 *
 * The loader's memory lives as long as a batch is lent or a tensor is out. destroy marks the
 * leases of lent batches (STK_LEASE_OUTLIVES) and counts them in `out`; whoever brings `out` to 0,
 * destroy, a release or a deleter, calls last_out.
 */
#ifndef STK_API_LEASES_H
#define STK_API_LEASES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/slots/lease.h"

/* What the leases ask of their owner. */
struct stk_leases_owner {
    void *self;
    /* A stream's work with the batch ends here. Any thread, one at a time. Returns 0 or an error;
     * STOKER_EINVAL: the stream cannot be used, nothing has happened. again: it has returned that
     * before. */
    int (*end_work)(void *self, struct stk_lease *lease, void *stream, bool again);
    /* No user is left. The consumer's thread. */
    void (*give_back)(void *self, struct stk_lease *lease);
    void (*wake)(void *self);     /* a batch is returned while the consumer waits. Any thread */
    void (*last_out)(void *self); /* after stk_leases_end() returned false. Any thread */
};

struct stk_leases {
    bool made;
    /* Returned by other threads: release pairs with acquire in give_back. seq_cst against
     * `waiting`. */
    _Atomic(struct stk_lease *) returned;
    /* Users whose end could not be marked: release pairs with acquire in retry. */
    _Atomic(struct stk_unended *) unended;
    _Atomic bool waiting; /* the consumer sleeps until one is returned */
    /* Tensors of all leases, batches that outlive the loader, calls that may end with it, and
     * STK_LEASE_RELEASED after end. */
    _Atomic uint32_t out;
    pthread_mutex_t lock; /* held in end_work */
    pthread_mutex_t turn; /* its holder owns slots and spares: see above */
    bool shares; /* releases take turns with next(); guarded by `turn` once batches are lent */
    struct stk_leases_owner owner;
};

void stk_leases_init(struct stk_leases *leases, const struct stk_leases_owner *owner);
void stk_leases_destroy(struct stk_leases *leases); /* all zero is allowed */

/* The batch that is lent there outlives the loader, unless another thread releases it just now.
 * Before stk_leases_end(), with the turn. */
void stk_leases_outlive(struct stk_leases *leases, struct stk_lease *lease);

/* No batch will be lent any more. Returns false if batches or tensors are out: the last release or
 * deleter calls last_out. */
bool stk_leases_end(struct stk_leases *leases);

/* The consumer made a tensor of the batch that is lent there. */
void stk_leases_add(struct stk_leases *leases, struct stk_lease *lease);

/* A tensor of the batch is deleted. Any thread. The leases and their owner may no longer exist on
 * return. */
void stk_leases_drop(struct stk_leases *leases, struct stk_lease *lease);

/* End the work of one more stream with the batch. Any thread. Returns what the owner's end_work
 * does. */
int stk_leases_end_work(struct stk_leases *leases, struct stk_lease *lease, void *stream);

/* The same if that returned STOKER_EINVAL and nobody can hear of it: the user stays one until a
 * later attempt succeeds, in the consumer's thread or at the end. `unended` is its own memory;
 * `out` is set to false then. Any thread. The leases and their owner may no longer exist on
 * return. */
void stk_leases_end_later(struct stk_leases *leases, struct stk_unended *unended,
                          struct stk_lease *lease, void *stream, _Atomic bool *out);
void stk_leases_release_later(struct stk_leases *leases, struct stk_lease *lease, void *stream);

/* Try again for all of them. The consumer's thread. */
void stk_leases_retry(struct stk_leases *leases);

static inline bool stk_leases_any_unended(struct stk_leases *leases)
{
    return atomic_load_explicit(&leases->unended, memory_order_relaxed) != NULL;
}

/* The consumer's thread releases a batch, or any thread one that outlives the loader, which may no
 * longer exist on return. Returns true if no tensor is out: the caller then gives the batch back
 * now. *rc is the return value of end_work(); with STOKER_EINVAL the batch is still lent. */
bool stk_leases_release(struct stk_leases *leases, struct stk_lease *lease, uint64_t turn,
                        void *stream, int *rc);

/* Any thread releases a batch, which the consumer's thread gives back later. The loader may no
 * longer exist on return, if it was destroyed. Returns what end_work does, with STOKER_EINVAL the
 * batch is still lent; 0 if it was released before. */
int stk_leases_return(struct stk_leases *leases, struct stk_lease *lease, uint64_t turn,
                      void *stream);

/* Give back the batches that other threads returned. The consumer's thread. */
void stk_leases_give_back(struct stk_leases *leases);

/* Let releases give back what next() need not wait for. Before any batch is lent. */
void stk_leases_share(struct stk_leases *leases);

/* next() begins and ends; nothing happens unless they share. */
void stk_leases_begin_turn(struct stk_leases *leases);
void stk_leases_end_turn(struct stk_leases *leases);

static inline bool stk_leases_any_returned(struct stk_leases *leases)
{
    return atomic_load_explicit(&leases->returned, memory_order_relaxed) != NULL;
}

static inline void stk_leases_collect(struct stk_leases *leases)
{
    if (stk_leases_any_unended(leases))
        stk_leases_retry(leases);
    if (stk_leases_any_returned(leases))
        stk_leases_give_back(leases);
}

/* Returns true if any tensor is out. After false, all that deleters did is visible. */
static inline bool stk_leases_any_out(const struct stk_leases *leases)
{
    return atomic_load_explicit(&leases->out, memory_order_acquire) != 0;
}

#endif
