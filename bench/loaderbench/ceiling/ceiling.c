/* ceiling.c - which loop measures which ceiling, and the rows that collect the measurements. */
#include "bench/loaderbench/ceiling/ceiling.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/loaderbench/statistics.h"

static const struct {
    const char *name;
    const struct bench_steps *steps;
} ceilings[] = {
    [BENCH_CEILING_GATHER] = { "gather", &bench_steps_gather },
    [BENCH_CEILING_DECODE] = { "decode", &bench_steps_decode },
    [BENCH_CEILING_TRANSFORM] = { "transform", &bench_steps_transform },
    [BENCH_CEILING_DECODE_TRANSFORM] = { "decode + transform", &bench_steps_decode_transform },
    [BENCH_CEILING_URING] = { "bare io_uring", &bench_steps_uring },
    [BENCH_CEILING_PREAD] = { "bare pread", &bench_steps_pread },
    [BENCH_CEILING_PARTS] = { "parts in turn", NULL },
    [BENCH_CEILING_PINNED] = { "pinned to GPU", &bench_steps_pinned },
    [BENCH_CEILING_PAGEABLE] = { "pageable to GPU", &bench_steps_pageable },
    [BENCH_CEILING_MEMCPY] = { "memcpy", &bench_steps_memcpy },
};

static_assert(sizeof(ceilings) / sizeof(ceilings[0]) == BENCH_CEILING_COUNT,
              "every ceiling has its loop");

const char *bench_ceiling_name(enum bench_ceiling_kind kind)
{
    return ceilings[kind].name;
}

static int prepare_material(enum bench_ceiling_kind kind, const struct bench_work *work,
                            stoker_error *error)
{
    const struct bench_material *material = work->material;
    switch (kind) {
    case BENCH_CEILING_GATHER:
    case BENCH_CEILING_TRANSFORM:
        return bench_material_need_rows(work->material, error);
    case BENCH_CEILING_DECODE:
    case BENCH_CEILING_DECODE_TRANSFORM:
        return bench_material_need_samples(work->material, error);
    case BENCH_CEILING_URING:
    case BENCH_CEILING_PREAD: {
        const bool readable = bench_material_is_readable(material) &&
                              material->bytes_max <= work->plan->from_bytes &&
                              (material->paths == NULL || kind == BENCH_CEILING_PREAD);
        return readable ? STOKER_OK : STOKER_ENOTSUP;
    }
    default:
        return STOKER_OK;
    }
}

/* Touches every row of the ring, and takes about as long as the loader's warm-up: windows may be
 * short, and a cold ceiling would flatter the loader. */
static uint32_t warm_steps(const struct bench_work *work)
{
    enum { WARM_ROWS = 60000 };
    if (work->one_pass)
        return 0;
    if (work->material == NULL || work->on_gpu)
        return 4;
    uint64_t rows = work->ring_rows + 4 * (uint64_t)work->batch_size;
    uint64_t once = work->material->count < WARM_ROWS ? work->material->count : WARM_ROWS;
    rows = rows > once ? rows : once;
    return (uint32_t)(rows / work->threads / work->batch_size + 1);
}

int bench_ceiling_measure(enum bench_ceiling_kind kind, const struct bench_work *work,
                          double *per_second, stoker_error *error)
{
    assert(kind < BENCH_CEILING_COUNT);
    assert(ceilings[kind].steps != NULL);
    assert(work->threads >= 1);
    int rc = prepare_material(kind, work, error);
    if (rc != STOKER_OK)
        return rc;
    const struct bench_steps *steps = ceilings[kind].steps;
    const struct bench_timed_steps timed = { .context = work,
                                             .threads = work->threads,
                                             .warm_steps = warm_steps(work),
                                             .seconds = work->one_pass ? 0 : work->seconds,
                                             .setup = steps->setup,
                                             .step = steps->step,
                                             .teardown = steps->teardown };
    return bench_timed_steps_run(&timed, per_second);
}

/* ---- rows ------------------------------------------------------------------------------ */

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
