/* pool.h - collects the measurements of all ceilings.
 *
 * Cells that differ only in what does not matter to a ceiling (pinned or not) share its row.
 */
#ifndef BENCH_CEILING_POOL_H
#define BENCH_CEILING_POOL_H

#include "bench/ceiling/ceiling.h"
#include "bench/result.h"

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
