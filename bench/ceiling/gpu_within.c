/* gpu_within.c - how fast a GPU's memory moves bytes: copies inside it, back to back, each of half as many bytes as a gather of
 * one batch reads and writes together, because a copy does both.
 */
#include "bench/ceiling/ceiling.h"
#include "bench/device/gpu.h"

#include <stdlib.h>

/* From each buffer to the next: together larger than a GPU's L2, or the copies would be of the cache. */
enum { GROUP = 16, BUFFERS_BYTES = 256 << 20, BUFFERS_MIN = 2 };

struct mover {
    const struct bench_work *work;
    struct bench_gpu *gpu;
    char *buffers;
    uint64_t buffer_bytes, buffer_count;
    uint64_t copies;
    uint32_t turn;
};

static void teardown(void *state)
{
    struct mover *mover = state;
    if (mover->gpu != NULL) {
        (void)bench_gpu_finish(mover->gpu);
        bench_gpu_free(mover->gpu, mover->buffers);
    }
    bench_gpu_close(&mover->gpu);
    free(mover);
}

static int make(struct mover *mover)
{
    const struct bench_work *work = mover->work;
    char why[BENCH_GPU_WHY_BYTES];
    mover->buffer_bytes = (work->plan->from_bytes + work->plan->to_bytes) * work->batch_size / 2;
    mover->buffer_count = BUFFERS_BYTES / mover->buffer_bytes;
    if (mover->buffer_count < BUFFERS_MIN)
        mover->buffer_count = BUFFERS_MIN;
    int rc = bench_gpu_open(&mover->gpu, work->gpu_index, why);
    if (rc != STOKER_OK)
        return rc;
    mover->buffers = bench_gpu_alloc(mover->gpu, mover->buffer_count * mover->buffer_bytes);
    return mover->buffers == NULL ? STOKER_ENOTSUP : STOKER_OK; /* it does not fit */
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    struct mover *mover = calloc(1, sizeof(*mover));
    (void)thread;
    (void)threads;
    if (mover == NULL)
        return STOKER_ENOMEM;
    mover->work = context;
    int rc = make(mover);
    if (rc == STOKER_OK)
        *state = mover;
    else
        teardown(mover);
    return rc;
}

static int move_one(struct mover *mover)
{
    const uint64_t from = mover->copies++ % mover->buffer_count;
    const uint64_t to = mover->copies % mover->buffer_count;
    return bench_gpu_copy_within(mover->gpu, mover->buffers + to * mover->buffer_bytes,
                                 mover->buffers + from * mover->buffer_bytes, mover->buffer_bytes);
}

static int64_t step(void *state)
{
    struct mover *mover = state;
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < GROUP; i++)
        rc = move_one(mover);
    if (rc == STOKER_OK)
        rc = bench_gpu_mark(mover->gpu, mover->turn++ % BENCH_GPU_EVENTS);
    if (rc == STOKER_OK)
        rc = bench_gpu_wait(mover->gpu, mover->turn % BENCH_GPU_EVENTS);
    return rc == STOKER_OK ? (int64_t)GROUP * mover->work->batch_size : rc;
}

const struct bench_steps bench_steps_copy_gpu = { setup, step, teardown };
