/* ledger.h - time and counts per stage, and the verdict on what limits the loader.
 *
 * Each worker has its own entry, so counting is a plain add without a lock prefix; stats sums them
 * up. All relaxed: a sum is a snapshot that orders nothing.
 */
#ifndef STK_PIPELINE_LEDGER_H
#define STK_PIPELINE_LEDGER_H

#include <stdatomic.h>
#include <stdint.h>
#include <stoker/stats.h>

#include "loader/base/clock.h"
#include "loader/base/memory/memory.h"

struct stk_ledger_entry {
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t read_ns;
    _Atomic uint64_t decode_ns;
    _Atomic uint64_t convert_ns;
    _Atomic uint64_t slot_wait_ns;
    _Atomic uint64_t reads;
    _Atomic uint64_t read_bytes;
    _Atomic uint64_t read_retries;
    _Atomic uint64_t cache_hits;
    _Atomic uint64_t regions; /* images of which a part was decoded */
    _Atomic uint64_t rows;    /* in complete spans */
    _Atomic uint64_t spans;   /* complete */
};

/* Counted by the consumer. */
struct stk_ledger_consumer {
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t batches;
    _Atomic uint64_t samples;
    _Atomic uint64_t length_values; /* stats.length_values: batches by length only */
    _Atomic uint64_t length_room;
    _Atomic uint64_t bytes;
    _Atomic uint64_t bad_samples;
    _Atomic uint64_t stall_ns;
    _Atomic uint64_t stalls;
    _Atomic uint64_t first_batch_ns;
    _Atomic uint64_t copies;
    _Atomic uint64_t copy_waits;
    /* Measured work in the caller's thread: time and CPU time. */
    _Atomic uint64_t sampled_ns;
    _Atomic uint64_t sampled_cpu_ns;
};

/* Add to a counter that only the calling thread writes. */
static inline void stk_ledger_add(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + amount, memory_order_relaxed);
}

/* Charge the time since *mark_ns to a stage, and set the mark to now. */
static inline void stk_ledger_charge(_Atomic uint64_t *stage_ns, uint64_t *mark_ns)
{
    const uint64_t now_ns = stk_now_ns();
    stk_ledger_add(stage_ns, now_ns - *mark_ns);
    *mark_ns = now_ns;
}

static inline uint64_t stk_ledger_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Time that a worker did not spend waiting for slots. */
static inline uint64_t stk_ledger_busy_ns(const struct stk_ledger_entry *entry)
{
    return stk_ledger_read(&entry->read_ns) + stk_ledger_read(&entry->decode_ns) +
           stk_ledger_read(&entry->convert_ns);
}

/* Add one worker's entry to the sums in stats. */
void stk_ledger_sum(const struct stk_ledger_entry *entry, stoker_stats *stats);

/* Set limit and verdict from the sums in stats. */
void stk_ledger_judge(stoker_stats *stats);

#endif
