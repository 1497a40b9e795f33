/* slots.h - the ring of batch slots between the workers and the consumer.
 *
 *            claim             last span done            next
 *   FREE ───────────▶ FILLING ───────────────▶ READY ───────────▶ LENT
 *    ▲                                                              │
 *    └────────────────────────── release ───────────────────────────┘
 *
 * The consumer may be a GPU's copy stream (pipeline/transfer): then LENT is COPYING, and the slot
 * is released when its bytes are on the GPU.
 *
 * Batch b uses slot b % slot_count. A slot has one owner in each state: none, the
 * workers that hold its spans, none, the consumer. So its bytes need no lock;
 * its two turn counters pass them on:
 *
 *   free_turn == b      the slot may be filled with batch b   (release stores b + slot_count)
 *   ready_turn == b + 1 the slot holds batch b, complete      (the last span stores it)
 *
 * Free slots flow backward as credits and are the only throttle. A wake-up costs a system call and
 * a switch, so neither side is woken for each batch: consumer_wait.h decides how long the consumer
 * sleeps; the workers are woken once half of the slots that are not lent have returned as credits,
 * and always before the consumer sleeps.
 *
 * A consumer that sleeps in poll() instead is woken for each batch that it waits for: the worker
 * that publishes batch `awaited` sets `event`.
 *
 * If the consumer keeps a batch and the ring comes round to its slot, the slot may exchange its
 * memory for a spare's: the batch stays where it is, outside of the ring, and the slot is free
 * (stk_slots_exchange).
 *
 * A ticket is one span of a batch; a worker may take some of its shares. claim_affinity.h decides
 * which of the next few tickets a worker gets.
 *
 * One slot's memory: | field 0 ....... | field 1 ... | ... | ids ...... | fresh .. | each on a
 * cache line
 */
#ifndef STK_PIPELINE_SLOTS_H
#define STK_PIPELINE_SLOTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/memory/memory.h"
#include "loader/device/device.h"
#include "loader/pipeline/report/bad_samples.h"
#include "loader/pipeline/slots/claim_affinity.h"
#include "loader/pipeline/slots/fields.h"
#include "loader/pipeline/slots/lease.h"

enum stk_row_state { STK_ROW_GOOD = 0, STK_ROW_SKIPPED = 1, STK_ROW_SUBSTITUTED = 2 };

/* The memory of one batch: a slot's or, outside of the ring, a kept batch's or a spare's. */
struct stk_slot_memory {
    struct stk_lease lease; /* first member: stk_slots_memory_of() */
    uint8_t *base;
    struct stk_region region;        /* its own; all zero if it is a part of the ring's */
    struct stk_slot_memory *earlier; /* list of all that were made for the ring to grow */
};

struct stk_slot {
    /* Three cache lines, by user: a core that waits for ready_turn must not take the line away from
     * the core that fills the slot. */
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t free_turn; /* release pairs with acquire in claim */
    _Atomic uint32_t shares_left; /* acq_rel: the last to count down sees all rows */
    _Atomic uint32_t bad_rows;    /* rows flagged in row_bad; relaxed: shares_left orders it */

    _Alignas(STK_CACHE_LINE) _Atomic uint64_t ready_turn; /* release (last span) pairs with
                                                             acquire (next) */

    /* This and all below: written at init and, while the slot is lent, by the consumer
     * (exchange). */
    _Alignas(STK_CACHE_LINE) uint8_t *images; /* field 0, where the memory starts */
    void *labels;                             /* the label's field; NULL = there is none */
    uint64_t *ids;
    /* batch_size flags: the row was made on the host, the GPU does not hold it; NULL = no flags. */
    uint8_t *fresh;
    /* The worker that completed it has finished it (finish.h); passed on like the rows. */
    bool finished;
    uint64_t *lengths;              /* rows' lengths, see fields.h; NULL = no field varies */
    uint8_t *row_bad;               /* batch_size flags: enum stk_row_state; used if bad_rows > 0 */
    struct stk_failure *failures;   /* batch_size records for flagged rows; NULL with FAIL */
    struct stk_slot_memory *memory; /* where images, labels, ids and fresh lie */

    /* The failed row with the lowest number, so that every worker count reports the
     * same one. Guarded by failure_lock while FILLING. */
    pthread_mutex_t failure_lock;
    uint32_t failure_row; /* UINT32_MAX = none */
    stoker_error failure;
};

struct stk_slots_options {
    uint32_t slot_count; /* 2..STOKER_PREFETCH_MAX */
    uint32_t batch_size;
    uint32_t batch_spans;
    uint32_t span_shares;               /* shares of a ticket, 1..STK_TICKET_SHARES_MAX */
    const struct stk_field_size *sizes; /* [field_count], copied */
    uint32_t field_count;
    uint32_t label; /* the label's field, or STK_NO_FIELD */
    stoker_switch pin_memory;
    struct stk_device *device; /* page-locks the slots; NULL = mlock does */
    const int32_t *node;       /* NUMA node that their memory should come from; NULL = any */
    bool mark_fresh;           /* room for a flag per row, copied with the rows */
    bool keep_failures;        /* room for a record per row */
    uint64_t batches;          /* total number of batches */
    uint32_t workers;          /* that claim; 1 = tickets are taken in order */
};

struct stk_slots {
    uint32_t slot_count;
    uint32_t batch_size;
    uint32_t batch_spans;
    uint32_t batch_shares; /* shares in all spans of a batch */
    /* Total number of batches; where it is only found on the way, UINT64_MAX until then. The worker
     * that claims rows of the last batch stores it before it completes them: READY of that batch
     * orders it for the consumer. */
    _Atomic uint64_t batches;
    size_t slot_bytes;
    struct stk_slot_fields fields;
    uint32_t label;                        /* the label's field, or STK_NO_FIELD */
    size_t ids_at;                         /* offsets in a slot's memory */
    size_t fresh_at;                       /* 0 = has none */
    stoker_switch pin_memory;              /* as asked for; spares follow it */
    struct stk_device *device;             /* the one that page-locked the slots, or NULL */
    int32_t node;                          /* NUMA node of the memory; -1 = any */
    struct stk_region memory;              /* all slots' bytes, one region: locked as one */
    struct stk_slot_memory *memories;      /* [slot_count], of the region */
    struct stk_slot_memory *extra;         /* the last one made by stk_slots_more_memory() */
    struct stk_region flags;               /* row_bad of all slots */
    struct stk_region lengths;             /* all slots'; not mapped if no field varies */
    struct stk_region failures;            /* records of all slots; not mapped with FAIL */
    char pin_reason[STK_DEVICE_WHY_BYTES]; /* why not locked; "" if locked or not requested */

    struct stk_claim_affinity affinity; /* used by workers only */

    /* Written by workers when a batch is complete. seq_cst against wake_at. */
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t published;

    /* Written by the consumer. */
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t wake_at; /* wake once published reaches this */
    _Atomic uint32_t consumer_word;                    /* futex */
    _Atomic uint32_t consumer_cpu;                     /* CPU it last waited on; relaxed: a hint */
    /* The batch whose completion sets `event`; UINT64_MAX = none. seq_cst against `published`. */
    _Atomic uint64_t awaited;
    _Atomic int event; /* see base/event.h; -1 = none. seq_cst against `interrupted` */

    _Alignas(STK_CACHE_LINE) _Atomic uint32_t sleepers; /* workers asleep for a credit */
    _Atomic uint32_t worker_word;                       /* futex */
    _Atomic bool stopping;
    _Atomic bool interrupted; /* the consumer is to stop waiting; seq_cst, as stopping */

    /* The consumer's own. */
    _Alignas(STK_CACHE_LINE) bool spare_core; /* more CPUs than workers: the
                                                 consumer may spin briefly */
    uint64_t head;                            /* next batch to deliver */
    uint32_t lent;
    uint32_t workers;       /* workers that fill slots now */
    uint32_t credits;       /* slots released since the workers were last woken */
    uint32_t spins_to_skip; /* waits left in which it sleeps at once */
    uint64_t batch_ns;      /* time between batches, smoothed; 0 = unknown */
    struct stk_slot *slots;
};

/* Allocate the memory, touch it, lock it if requested. Returns 0, STOKER_ENOMEM or STOKER_EPIN; on
 * failure *slots is all zero except pin_reason. */
int stk_slots_init(struct stk_slots *slots, const struct stk_slots_options *options);
void stk_slots_destroy(struct stk_slots *slots); /* half-built and all zero are allowed */

static inline struct stk_slot *stk_slots_of(const struct stk_slots *slots, uint64_t batch)
{
    return &slots->slots[batch % slots->slot_count];
}

/* ---- workers ---- */

enum stk_claim { STK_CLAIM_OK, STK_CLAIM_NO_CREDIT, STK_CLAIM_OVER };

/* Take up to `shares` (>= 1) shares of a ticket whose slot is free and whose batch is at most
 * last_batch. */
enum stk_claim stk_slots_claim(struct stk_slots *slots, uint32_t worker, uint64_t last_batch,
                               uint32_t shares, struct stk_piece *piece);

/* Sleep until a credit may be there, or stopping; at most wait_ns (< 0 = no limit). */
void stk_slots_wait_credit(struct stk_slots *slots, int64_t wait_ns);

/* Report `shares` more complete shares of the batch. Returns true if they were the last ones: then
 * the caller sees all rows, and publishes the batch. */
bool stk_slots_count_down(struct stk_slots *slots, uint64_t batch, uint32_t shares);
void stk_slots_publish(struct stk_slots *slots, uint64_t batch);

/* Count down and, if they were the last shares, publish. Returns true if it published. */
bool stk_slots_shares_done(struct stk_slots *slots, uint64_t batch, uint32_t shares);

/* Record the failure of a row if it is the first of its batch. */
void stk_slot_fail(struct stk_slot *slot, uint32_t row, const stoker_error *error);

/* ---- the consumer ---- */

bool stk_slots_ready(const struct stk_slots *slots);

/* Returns true if the slot of the head batch is still lent: waiting for it would never end. */
static inline bool stk_slots_head_lent(const struct stk_slots *slots)
{
    const struct stk_slot *slot = stk_slots_of(slots, slots->head);
    return atomic_load_explicit(&slot->free_turn, memory_order_relaxed) != slots->head;
}

/* Lend the head batch, which is ready, to the consumer. */
static inline void stk_slots_take(struct stk_slots *slots)
{
    slots->head++;
    slots->lent++;
}

/* Returns true if the batch is lent. Consumer's thread. */
static inline bool stk_slots_holds(const struct stk_slots *slots, uint64_t batch)
{
    const struct stk_slot *slot = stk_slots_of(slots, batch);
    return batch < slots->head &&
           atomic_load_explicit(&slot->free_turn, memory_order_relaxed) == batch;
}

/* Release the slot of a delivered batch. Returns false, and does nothing, if it was released
 * before. */
bool stk_slots_release(struct stk_slots *slots, uint64_t batch);

/* Make memory for one more batch, touched, and page-locked if the slots are; destroy frees it.
 * Returns NULL if there is none, with the reason in `why`. Consumer's thread. */
struct stk_slot_memory *stk_slots_more_memory(struct stk_slots *slots,
                                              char why[STK_DEVICE_WHY_BYTES]);

/* Free the slot of a lent batch, which keeps its memory: the slot gets `memory`, in which nothing
 * is lent. Consumer's thread. */
void stk_slots_exchange(struct stk_slots *slots, uint64_t batch, struct stk_slot_memory *memory);

static inline struct stk_slot_memory *stk_slots_memory_of(struct stk_lease *lease)
{
    return (struct stk_slot_memory *)lease;
}

/* Sleep until another thread calls wake_consumer; at most wait_ns (< 0 = no limit). `word` is
 * consumer_word as it was before the reason to sleep was checked. */
void stk_slots_sleep(struct stk_slots *slots, uint32_t word, int64_t wait_ns);
void stk_slots_wake_consumer(struct stk_slots *slots); /* any thread */

/* Wake the workers that sleep for a credit. Any thread. */
void stk_slots_wake_workers(struct stk_slots *slots);

/* From now on the head batch sets `event`, which is clear, when it is published. Wakes the workers,
 * since the consumer may sleep elsewhere. The caller then checks if the batch is ready. Consumer's
 * thread. */
void stk_slots_await(struct stk_slots *slots);

/* No batch sets `event` any more; it is set. Consumer's thread. */
void stk_slots_await_none(struct stk_slots *slots);

/* Set `event`, if there is one. Any thread, and signal handlers. */
void stk_slots_set_event(struct stk_slots *slots);

/* Stop: wake all threads for good. Any thread. */
void stk_slots_stop(struct stk_slots *slots);

/* Let the consumer stop waiting. Any thread, and signal handlers. */
void stk_slots_interrupt(struct stk_slots *slots);

/* Full slots waiting for a consumer that took `delivered`; an estimate while others run. Any
 * thread. */
uint32_t stk_slots_ready_count(const struct stk_slots *slots, uint64_t delivered);

#endif
