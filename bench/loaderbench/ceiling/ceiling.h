/* ceiling.h - the best rate that this machine could reach at the loader's work.
 *
 * Each ceiling is the bare inner loop of one stage, with warm and reused buffers, on
 * as many threads as the cell has workers: no slots, no synchronization, no consumer.
 */
#ifndef BENCH_CEILING_H
#define BENCH_CEILING_H

#include "bench/loaderbench/ceiling/timed_steps.h"
#include "bench/loaderbench/material/material.h"
#include "bench/loaderbench/result.h"
#include "bench/loaderbench/transform.h"
#include "kernels/convert/convert.h"

enum bench_ceiling_kind {
    BENCH_CEILING_GATHER,
    BENCH_CEILING_DECODE,
    BENCH_CEILING_TRANSFORM, /* with crop, flip, resize */
    BENCH_CEILING_DECODE_TRANSFORM,
    BENCH_CEILING_URING,
    BENCH_CEILING_PREAD,
    BENCH_CEILING_PARTS,    /* computed from others: read, then decode, then convert */
    BENCH_CEILING_PINNED,   /* to a GPU */
    BENCH_CEILING_PAGEABLE, /* to a GPU */
    BENCH_CEILING_MEMCPY,
    BENCH_CEILING_COUNT
};

/* The work of one ceiling. Threads get equal shares of the ring. */
struct bench_work {
    struct bench_material *material; /* memcpy: may be NULL */
    /* For encoded reads: copies bytes, as many as the longest sample has. */
    const struct stk_convert_plan *plan;
    const struct bench_transform *transform; /* NULL = images stay as they are */
    uint32_t threads;
    uint32_t batch_size;
    uint64_t ring_rows; /* over all threads, >= 1 */
    uint32_t read_depth;
    uint32_t wait_reads; /* completions to wait for at once; 0 = choose */
    bool one_pass;       /* each sample once, no warm-up: for cold files */
    double seconds;      /* duration without one_pass */
    bool on_gpu;         /* a ceiling of a GPU: one thread */
    uint32_t gpu_index;
    uint64_t copy_bytes; /* per batch */
};

/* "gather", ... */
const char *bench_ceiling_name(enum bench_ceiling_kind kind);

/* Measures once; not for BENCH_CEILING_PARTS. The result is samples per second, for memcpy bytes.
 * STOKER_ENOTSUP: this ceiling cannot be measured on this data set or machine. */
int bench_ceiling_measure(enum bench_ceiling_kind kind, const struct bench_work *work,
                          double *per_second, stoker_error *error);

/* Returns true if rows are delivered as they are stored. */
static inline bool bench_keeps_rows(const struct stk_convert_plan *plan)
{
    return plan->copies && (plan->layout == STOKER_LAYOUT_NHWC || plan->channels == 1);
}

/* The steps of each kind; see timed_steps.h. context is a struct bench_work. */
struct bench_steps {
    int (*setup)(const void *context, uint32_t thread, uint32_t threads, void **state);
    int64_t (*step)(void *state);
    void (*teardown)(void *state);
};

extern const struct bench_steps bench_steps_gather;
extern const struct bench_steps bench_steps_decode;
extern const struct bench_steps bench_steps_transform;
extern const struct bench_steps bench_steps_decode_transform;
extern const struct bench_steps bench_steps_uring; /* without liburing: setup = STOKER_ENOTSUP */
extern const struct bench_steps bench_steps_pread;
extern const struct bench_steps bench_steps_pinned;
extern const struct bench_steps bench_steps_pageable;
extern const struct bench_steps bench_steps_memcpy;

/* ---- measurements of all cells ----
 *
 * Cells that differ only in what does not matter to a ceiling (pinned or not) share its row. */

struct bench_pool_entry {
    struct bench_ceiling_row row; /* key: name to read_depth; and the note */
    double row_bytes;             /* delivered per sample; 1 if samples are bytes */
    double *values;
    size_t count;
};

struct bench_pool {
    struct bench_pool_entry *entries;
    size_t count;
};

/* Adds one value, NaN for "cannot be measured here". STOKER_ENOMEM. */
int bench_pool_add(struct bench_pool *pool, const struct bench_ceiling_row *key, double row_bytes,
                   double value);

/* Fills in the measured part of entry's row. */
void bench_pool_summarize(struct bench_pool_entry *entry);

void bench_pool_destroy(struct bench_pool *pool);

#endif
