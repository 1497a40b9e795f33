/* ceiling.c - which loop measures which ceiling, and the piece size of the best ring. */
#include "bench/ceiling/ceiling.h"

#include <assert.h>

static const struct {
    const char *name;
    const struct bench_steps *steps;
} ceilings[] = {
    [BENCH_CEILING_GATHER_SAME] = { "gather same ring", &bench_steps_gather },
    [BENCH_CEILING_GATHER_BEST] = { "gather best ring", &bench_steps_gather },
    [BENCH_CEILING_DECODE] = { "decode", &bench_steps_decode },
    [BENCH_CEILING_UNPACK] = { "unpack", &bench_steps_unpack },
    [BENCH_CEILING_TRANSFORM] = { "transform", &bench_steps_transform },
    [BENCH_CEILING_DECODE_TRANSFORM] = { "decode + transform", &bench_steps_decode_transform },
    [BENCH_CEILING_URING] = { "bare io_uring", &bench_steps_uring },
    [BENCH_CEILING_PREAD] = { "bare pread", &bench_steps_pread },
    [BENCH_CEILING_FILES_URING] = { "files io_uring", &bench_steps_files_uring },
    [BENCH_CEILING_FILES] = { "files", &bench_steps_files },
    [BENCH_CEILING_PARTS] = { "parts in turn", NULL },
    [BENCH_CEILING_PINNED] = { "pinned to GPU", &bench_steps_pinned },
    [BENCH_CEILING_PAGEABLE] = { "pageable to GPU", &bench_steps_pageable },
    [BENCH_CEILING_GATHER_GPU] = { "gather on GPU", &bench_steps_gather_gpu },
    [BENCH_CEILING_COPY_GPU] = { "copy on GPU", &bench_steps_copy_gpu },
    [BENCH_CEILING_MEMCPY_DRAM] = { "memcpy DRAM", &bench_steps_memcpy_dram },
    [BENCH_CEILING_MEMCPY_CACHE] = { "memcpy cache", &bench_steps_memcpy_cache },
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
    switch (kind) {
    case BENCH_CEILING_GATHER_SAME:
    case BENCH_CEILING_GATHER_BEST:
    case BENCH_CEILING_GATHER_GPU:
    case BENCH_CEILING_TRANSFORM:
        return bench_material_need_rows(work->material, error);
    case BENCH_CEILING_UNPACK:
        return bench_material_need_samples(work->material, error);
    case BENCH_CEILING_DECODE:
    case BENCH_CEILING_DECODE_TRANSFORM: {
        const int rc = bench_material_need_samples(work->material, error);
        return rc == STOKER_OK && work->material->codec == NULL ? STOKER_ENOTSUP : rc;
    }
    case BENCH_CEILING_URING:
    case BENCH_CEILING_PREAD: {
        const struct bench_material *material = work->material;
        bool readable = bench_material_is_readable(material) && material->paths == NULL &&
                        material->bytes_max <= work->plan->from_bytes;
        return readable ? STOKER_OK : STOKER_ENOTSUP;
    }
    case BENCH_CEILING_FILES_URING:
    case BENCH_CEILING_FILES:
        return work->material->paths != NULL ? STOKER_OK : STOKER_ENOTSUP;
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

int bench_ceiling_best_piece(const struct bench_work *work, uint32_t *piece_rows,
                             stoker_error *error)
{
    static const double trial_seconds = 0.02;
    double best = 0;
    uint32_t found = work->batch_size;
    /* The whole batch first, then powers of four below it. */
    for (uint32_t piece = work->batch_size; piece >= 1; piece = piece > 64 ? 64 : piece / 4) {
        struct bench_work trial = *work;
        double rate = 0;
        trial.batch_size = piece;
        trial.ring_rows = (uint64_t)piece * work->threads;
        trial.seconds = trial_seconds;
        int rc = bench_ceiling_measure(BENCH_CEILING_GATHER_BEST, &trial, &rate, error);
        if (rc != STOKER_OK)
            return rc;
        if (rate > best) {
            best = rate;
            found = piece;
        }
        if (piece < 4)
            break;
    }
    *piece_rows = found;
    return STOKER_OK;
}
