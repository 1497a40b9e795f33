/* headspace.c - replays cached batches: the most that any loader could deliver. */
#include "bench/loaderbench/cell/run.h"
#include "bench/loaderbench/timing.h"
#include "loader/base/clock.h"

#include <stdlib.h>
#include <stoker/cuda.h>
#include <string.h>

enum { KEPT_MAX = 8 };

struct kept_batch {
    void *images;
    size_t bytes;
    uint64_t id;
    uint32_t count;
};

static int keep_batch(struct kept_batch *out, const stoker_batch *batch)
{
    size_t bytes = stoker_dtype_bytes(batch->images.dtype);
    for (uint32_t axis = 0; axis < batch->images.rank; axis++)
        bytes *= (size_t)batch->images.shape[axis];
    *out = (struct kept_batch){ .bytes = bytes, .count = batch->count };
    if (bytes == 0)
        return STOKER_OK;
    out->images = malloc(bytes);
    if (out->images == NULL)
        return STOKER_ENOMEM;
    memcpy(out->images, batch->images.data, bytes);
    out->id = batch->ids[0];
    return STOKER_OK;
}

static int collect(stoker_loader *loader, struct kept_batch *kept, uint32_t *count)
{
    while (*count < KEPT_MAX) {
        stoker_batch batch = STOKER_BATCH_INIT;
        int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END && *count > 0)
            break;
        if (rc == STOKER_EPOCH_END)
            continue;
        if (rc != STOKER_OK)
            return rc;
        rc = keep_batch(&kept[*count], &batch);
        stoker_batch_release(&batch);
        if (rc != STOKER_OK)
            return rc;
        (*count)++;
    }
    return STOKER_OK;
}

static double replay(const struct kept_batch *kept, uint32_t count, uint64_t step_ns,
                     double seconds)
{
    uint64_t begin_ns = stk_now_ns();
    uint64_t samples = 0;
    uint64_t spent_ns = 0;
    for (uint64_t turn = 0; (double)spent_ns < seconds * 1e9; turn++) {
        const struct kept_batch *batch = &kept[turn % count];
        if (batch->bytes > 0)
            bench_consumer_touch(batch->images, batch->bytes, &batch->id);
        if (step_ns > 0)
            bench_sleep_ns(step_ns);
        samples += batch->count;
        spent_ns = stk_now_ns() - begin_ns;
    }
    return (double)samples * 1e9 / (double)spent_ns;
}

static int replay_on_gpu(const struct bench_consumer *consumer, double seconds,
                         double *samples_per_s)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = stoker_loader_next(consumer->loader, &batch, -1);
    while (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(consumer->loader, &batch, -1);
    if (rc != STOKER_OK)
        return rc;
    rc = bench_gpu_step_begin(consumer->gpu, &batch);
    if (rc == STOKER_OK)
        rc = bench_gpu_step_alone(consumer->gpu, &batch, seconds, samples_per_s);
    *samples_per_s *= batch.count;
    int released = stoker_batch_release_on(&batch, bench_gpu_stream(consumer->gpu->gpu));
    return rc == STOKER_OK ? released : rc;
}

int bench_headspace_measure(const struct bench_consumer *consumer, double seconds,
                            double *samples_per_s)
{
    if (consumer->gpu != NULL)
        return replay_on_gpu(consumer, seconds, samples_per_s);
    struct kept_batch kept[KEPT_MAX] = { 0 };
    uint32_t count = 0;
    int rc = collect(consumer->loader, kept, &count);
    if (rc == STOKER_OK)
        *samples_per_s = replay(kept, count, consumer->step_ns, seconds);
    for (uint32_t index = 0; index < KEPT_MAX; index++)
        free(kept[index].images);
    return rc;
}
