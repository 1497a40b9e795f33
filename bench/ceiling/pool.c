/* pool.c - see pool.h. */
#include "bench/ceiling/pool.h"
#include "bench/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_key(const struct bench_ceiling_row *a, const struct bench_ceiling_row *b)
{
    return strcmp(a->name, b->name) == 0 && a->threads == b->threads &&
           a->batch_size == b->batch_size && strcmp(a->dtype, b->dtype) == 0 &&
           a->ring_bytes == b->ring_bytes && a->read_depth == b->read_depth;
}

static struct bench_pool_entry *find_or_add(struct bench_pool *pool,
                                            const struct bench_ceiling_row *key, double row_bytes)
{
    for (size_t index = 0; index < pool->count; index++)
        if (same_key(&pool->entries[index].row, key))
            return &pool->entries[index];
    struct bench_pool_entry *more =
        realloc(pool->entries, (pool->count + 1) * sizeof(pool->entries[0]));
    if (more == NULL)
        return NULL;
    pool->entries = more;
    struct bench_pool_entry *entry = &more[pool->count++];
    *entry = (struct bench_pool_entry){ .row = *key, .row_bytes = row_bytes };
    return entry;
}

int bench_pool_add(struct bench_pool *pool, const struct bench_ceiling_row *key, double row_bytes,
                   double value)
{
    struct bench_pool_entry *entry = find_or_add(pool, key, row_bytes);
    if (entry == NULL)
        return STOKER_ENOMEM;
    if (!isfinite(value))
        return STOKER_OK;
    double *more = realloc(entry->values, (entry->count + 1) * sizeof(entry->values[0]));
    if (more == NULL)
        return STOKER_ENOMEM;
    entry->values = more;
    entry->values[entry->count++] = value;
    return STOKER_OK;
}

void bench_pool_summarize(struct bench_pool_entry *entry)
{
    struct bench_statistics found = bench_statistics_of(entry->values, entry->count);
    bool bytes = entry->row.batch_size == 0; /* memcpy has no samples */
    entry->row.repeats = (uint32_t)found.count;
    entry->row.samples_per_s = bytes ? NAN : found.median;
    entry->row.samples_per_s_min = bytes ? NAN : found.min;
    entry->row.samples_per_s_max = bytes ? NAN : found.max;
    entry->row.bytes_per_s = found.median * entry->row_bytes;
}

void bench_pool_destroy(struct bench_pool *pool)
{
    for (size_t index = 0; index < pool->count; index++)
        free(pool->entries[index].values);
    free(pool->entries);
    *pool = (struct bench_pool){ 0 };
}
