/* pipeline.h - what all workers of one loader share, and the path of one row through it.
 *
 *   ticket ─▶ span ─▶ ids ─▶ located ─┬─ resident ───────────────────┐
 *                                     ├─ made from its id ─▶ decode ─┼─▶ convert ─▶ row of the slot
 *                                     └─ read ─▶ decode ─────────────┘
 *
 * In each worker, calls go one way:
 *
 *   worker.c ──▶ claim.c        which rows: tickets, slots, affinity; schedule, sampler
 *            ├─▶ row.c          locate, decode, transform, write    ─▶ DONE | READ | AGAIN
 *            ├─▶ neighbor_reads.c  neighbors, together        ─▶ NONE | DONE | READ | ALONE
 *            └─▶ fetch.c        queue, submit, reap                 ─▶ completions
 *
 * Constant while the workers run, except for the members marked shared. Their headers have the
 * rules.
 */
#ifndef STK_PIPELINE_H
#define STK_PIPELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/reader.h>

#include "kernels/convert/convert.h"
#include "kernels/transform/transform.h"
#include "loader/base/cpu/cpu_share.h"
#include "loader/cache/cache.h"
#include "loader/dataset/dataset.h"
#include "loader/pipeline/batch/batch_layout.h"
#include "loader/pipeline/batch/blend.h"
#include "loader/pipeline/batch/hook.h"
#include "loader/pipeline/gpu/device_cache.h"
#include "loader/pipeline/gpu/device_decode.h"
#include "loader/pipeline/order/schedule.h"
#include "loader/pipeline/plan/field_plan.h"
#include "loader/pipeline/plan/pipeline_plan.h"
#include "loader/pipeline/report/bad_samples.h"
#include "loader/pipeline/report/messages.h"
#include "loader/pipeline/slots/slots.h"
#include "loader/sampler/sampler.h"

struct stk_pipeline {
    const stoker_dataset *dataset;
    const struct stk_finishing *finish; /* what is done to complete slots */
    const stoker_reader *reader;
    struct stk_pipeline_plan plan; /* the route of rows; constant once made */
    const stoker_file *files;
    uint32_t read_depth;
    struct stk_field_plan field_plan;
    uint32_t part_count;      /* parts of a sample */
    size_t encoded_bytes_max; /* longest part; 0 = nothing is ever read */
    struct stk_sampler sampler;
    struct stk_schedule schedule;
    struct stk_length_batches *lengths;  /* owned; NULL without options.batch_values_max */
    struct stk_convert_plan convert;     /* makes rows as delivered */
    struct stk_transform_plan transform; /* plan.finish TRANSFORM: ends in convert */
    size_t image_bytes_max;              /* largest decoded image */
    uint64_t shape[STOKER_RANK_MAX];     /* row as delivered, but channels last */
    uint32_t cpus;                       /* available to this process */
    struct stk_cpu_share cpu_share;      /* that the workers' threads keep to */
    stoker_on_bad on_bad;
    struct stk_hooks hooks;
    struct stk_blend_plan blend;
    struct stk_cache cache; /* shared */
    uint64_t *first_pieces; /* each file's, if the cache holds pieces (file_pieces.h); else NULL */
    struct stk_cache notes; /* shared; stoker_notes of samples; NONE = none are kept */
    struct stk_device_cache device_cache; /* shared */
    struct stk_device_decode decode;      /* shared */
    struct stk_slots slots;               /* shared */
    struct stk_messages messages;         /* shared */

    _Atomic uint32_t active_workers; /* workers with an index >= this rest; written by the tuner */
    /* Bytes without a checksum were read from an open file, or were missing there, since the
     * consumer last checked the files. Set after the read, cleared before the check: relaxed,
     * since the batch with the row is published later. */
    _Atomic bool reads_unchecked;
    _Atomic uint32_t pread_workers; /* workers whose own ring failed */
};

/* Notes about a part may take this part of its bytes: 1/32. */
enum { STK_NOTES_PART = 32 };

static inline uint8_t *stk_pipeline_row(const struct stk_pipeline *pipeline,
                                        const struct stk_slot *slot, uint32_t row)
{
    return slot->images + (size_t)row * pipeline->convert.to_bytes;
}

/* Returns true if the consumer mixes the batch of a slot whose rows are all done: some of them
 * are skipped. */
static inline bool stk_blend_is_left(const struct stk_pipeline *pipeline,
                                     const struct stk_slot *slot)
{
    return pipeline->on_bad == STOKER_ON_BAD_SKIP &&
           atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) > 0;
}

/* Returns true if the cache holds decoded records (field_plan.h). Rows that lie side by side in a
 * file are the same as stored and decoded. */
static inline bool stk_pipeline_caches_records(const struct stk_pipeline *pipeline)
{
    return pipeline->cache.kind == STOKER_CACHE_DECODED ||
           (pipeline->cache.kind == STOKER_CACHE_ENCODED && pipeline->dataset->info.dense);
}

/* Returns true if all samples may become cached records, after which nothing is read. */
static inline bool stk_pipeline_may_become_resident(const struct stk_pipeline *pipeline)
{
    return pipeline->device_cache.on || (stk_pipeline_caches_records(pipeline) &&
                                         pipeline->cache.capacity == pipeline->dataset->info.count);
}

/* Returns true if nothing is read, now and later. */
static inline bool stk_pipeline_is_resident(const struct stk_pipeline *pipeline)
{
    return pipeline->encoded_bytes_max == 0 ||
           stk_device_cache_holds_all(&pipeline->device_cache) ||
           (stk_pipeline_caches_records(pipeline) &&
            stk_cache_holds_all(&pipeline->cache, pipeline->dataset->info.count));
}

/* Let the consumer check the files that unverified bytes came from, or did not: what is missing
 * may have been cut off. */
static inline void stk_pipeline_note_unchecked(struct stk_pipeline *pipeline,
                                               const stoker_codec *codec)
{
    const bool verifies = codec != NULL && codec->verify != NULL;
    if (!verifies && !atomic_load_explicit(&pipeline->reads_unchecked, memory_order_relaxed))
        atomic_store_explicit(&pipeline->reads_unchecked, true, memory_order_relaxed);
}

#endif
