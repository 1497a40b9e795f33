/* ceiling.c - which loop measures which ceiling. */
#include "bench/ceiling/ceiling.h"

#include <assert.h>

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

/* Touches every row of the ring, and takes about as long as the loader's warm-up: windows may be short,
 * and a cold ceiling would flatter the loader. */
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
