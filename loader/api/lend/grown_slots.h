/* grown_slots.h - what next() does when the ring comes round to a batch that the caller still uses:
 * options.on_lent.
 *
 *   head ─▶ slot is free ────────────────────────────────────────────────────────────▶ 0
 *       └─▶ slot is lent ─┬─ GROW ─▶ spare, or budget left ─▶ exchange the memory ──▶ 0
 *                         │                     └─ neither ─┐
 *                         ├─ WAIT ──────────────────────────┴▶ sleep until it is returned ─▶ 0, or BUSY in the end
 *                         └─ BUSY ──────────────────────────────────────────────────────────▶ BUSY
 *
 * Consumer's thread, except for what is atomic. A caller that keeps nothing pays one comparison per
 * batch.
 */
#ifndef STK_API_KEPT_H
#define STK_API_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/pipeline/slots/lease.h"

/* Why the last exchange was refused. */
enum stk_kept_limit { STK_KEPT_FREE, STK_KEPT_BUDGET, STK_KEPT_MEMORY };

struct stk_kept {
    bool any_thread;          /* batches may be released by any thread */
    bool has_budget;          /* bytes_max is chosen: at the first exchange */
    struct stk_lease *spares; /* leases with no batch lent */
    /* Read by stats in any thread, relaxed. */
    _Atomic uint64_t bytes_max;
    _Atomic uint64_t bytes; /* kept and spare, without the pages given back */
    _Atomic uint32_t count;
    _Atomic uint32_t limit; /* enum stk_kept_limit */
};

/* Give every lease of the ring its tensors. Returns 0 or STOKER_ENOMEM. */
int stk_kept_init(stoker_loader *loader);

/* The batches that are lent outlive the loader: stk_leases_outlive(). */
void stk_kept_outlive(stoker_loader *loader);

/* Free all that belongs to the leases outside the ring except their memory. All zero is allowed. */
void stk_kept_destroy(stoker_loader *loader);

/* Make sure that the slot or buffer for the head batch is not lent. *start_ns is when next() began,
 * 0 if the clock was not read yet. Returns 0 or STOKER_BUSY. */
int stk_kept_make_room(stoker_loader *loader, int32_t timeout_ms, uint64_t *start_ns);

/* Exchange the memory of a lent batch that the ring will come round to soon, if the policy and the
 * budget allow it. */
void stk_kept_look_ahead(stoker_loader *loader);

/* An epoch has ended. Give the pages back of spares in host memory that an entire epoch has not
 * used; they stay spares. */
void stk_kept_end_epoch(stoker_loader *loader);

/* A kept batch is released: its memory becomes a spare. */
static inline void stk_kept_put(struct stk_kept *kept, struct stk_lease *lease)
{
    lease->kept = false;
    lease->idle_epochs = 0;
    lease->next = kept->spares;
    kept->spares = lease;
}

#endif
