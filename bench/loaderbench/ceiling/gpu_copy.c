/* gpu_copy.c - how fast batches can be copied to a GPU: copies of the cell's size, queued on one
 * stream, from as many slots as the cell has.
 *
 *   [ 16 copies ] mark 0   [ 16 copies ] mark 1   wait for mark 0   [ 16 copies ] ...
 *
 * One group is always in flight while the next is queued.
 */
#include "bench/loaderbench/ceiling/ceiling.h"
#include "bench/loaderbench/device/gpu.h"

#include <stdlib.h>

enum { GROUP_BYTES = 4 << 20, GROUP_MAX = 16, BUFFERS = 4 };

struct copier {
    const struct bench_work *work;
    struct bench_gpu *gpu;
    struct bench_block slots;
    bool pinned;
    uint64_t slot_count;
    char *buffers; /* on the GPU */
    uint32_t group;
    uint64_t copies;
    uint32_t turn;
};

static void teardown_copier(void *state)
{
    struct copier *copier = state;
    if (copier->gpu != NULL) {
        (void)bench_gpu_finish(copier->gpu);
        if (copier->pinned)
            bench_gpu_unpin(copier->gpu, copier->slots.bytes);
        bench_gpu_free(copier->gpu, copier->buffers);
    }
    bench_gpu_close(&copier->gpu);
    bench_block_destroy(&copier->slots);
    free(copier);
}

static int open_copier(struct copier *copier, bool pinned)
{
    const struct bench_work *work = copier->work;
    char why[BENCH_GPU_WHY_BYTES];
    uint64_t group = GROUP_BYTES / work->copy_bytes;
    copier->group = group < 1 ? 1 : group < GROUP_MAX ? (uint32_t)group : GROUP_MAX;
    copier->slot_count = work->ring_rows / work->batch_size;
    int rc = bench_block_create(&copier->slots, copier->slot_count * work->copy_bytes);
    if (rc == STOKER_OK)
        rc = bench_gpu_open(&copier->gpu, work->gpu_index, why);
    if (rc == STOKER_OK && pinned) {
        rc = bench_gpu_pin(copier->gpu, copier->slots.bytes, copier->slots.size);
        copier->pinned = rc == STOKER_OK;
    }
    if (rc != STOKER_OK)
        return rc;
    copier->buffers = bench_gpu_alloc(copier->gpu, BUFFERS * work->copy_bytes);
    return copier->buffers == NULL ? STOKER_EDEVICE : STOKER_OK;
}

static int setup_copier(const struct bench_work *work, bool pinned, void **state)
{
    struct copier *copier = calloc(1, sizeof(*copier));
    if (copier == NULL)
        return STOKER_ENOMEM;
    copier->work = work;
    int rc = open_copier(copier, pinned);
    if (rc == STOKER_OK)
        *state = copier;
    else
        teardown_copier(copier);
    return rc;
}

static int setup_pinned(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)thread;
    (void)threads;
    return setup_copier(context, true, state);
}

static int setup_pageable(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)thread;
    (void)threads;
    return setup_copier(context, false, state);
}

static int64_t step_copier(void *state)
{
    struct copier *copier = state;
    const uint64_t bytes = copier->work->copy_bytes;
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < copier->group; i++, copier->copies++)
        rc = bench_gpu_copy_to(
            copier->gpu, copier->buffers + copier->copies % BUFFERS * bytes,
            (const char *)copier->slots.bytes + copier->copies % copier->slot_count * bytes, bytes);
    if (rc == STOKER_OK)
        rc = bench_gpu_mark(copier->gpu, copier->turn++ % BENCH_GPU_EVENTS);
    if (rc == STOKER_OK)
        rc = bench_gpu_wait(copier->gpu, copier->turn % BENCH_GPU_EVENTS);
    return rc == STOKER_OK ? (int64_t)copier->group * copier->work->batch_size : rc;
}

const struct bench_steps bench_steps_pinned = { setup_pinned, step_copier, teardown_copier };
const struct bench_steps bench_steps_pageable = { setup_pageable, step_copier, teardown_copier };
