/* consumer.c - takes, touches and releases batches, and times whole epochs of that. */
#include "bench/loaderbench/cell/consumer.h"
#include "bench/loaderbench/result.h"
#include "bench/loaderbench/timing.h"
#include "loader/base/clock.h"
#include "loader/cli/interrupt.h"

#include <assert.h>
#include <stoker/cuda.h>

void bench_consumer_touch(const void *images, size_t bytes, const uint64_t *ids)
{
    const unsigned char *at = images;
    uint64_t sum = ids[0] + at[0] + at[bytes / 2] + at[bytes - 1];
    __asm__ volatile("" : : "r"(sum)); /* the compiler must assume that it is used */
}

/* A batch in host memory. */
static int use(struct bench_consumer *consumer, const stoker_batch *batch, size_t image_bytes)
{
    if (batch->count > 0)
        bench_consumer_touch(batch->images.data, image_bytes, batch->ids);
    if (consumer->verify != NULL && !bench_verify_batch(consumer->verify, batch))
        return STOKER_ECORRUPT;
    if (consumer->step_ns > 0)
        bench_sleep_ns(consumer->step_ns);
    return STOKER_OK;
}

/* A batch on a GPU. The first one counts as delivered only once its copy is complete. */
static int use_on_gpu(struct bench_consumer *consumer, const stoker_batch *batch)
{
    stoker_batch seen;
    int rc = bench_gpu_step_begin(consumer->gpu, batch);
    if (rc == STOKER_OK && consumer->first_ns == 0)
        rc = bench_consumer_finish(consumer);
    if (rc != STOKER_OK || consumer->verify == NULL)
        return rc;
    rc = bench_gpu_step_fetch(consumer->gpu, batch, &seen);
    return rc == STOKER_OK && !bench_verify_batch(consumer->verify, &seen) ? STOKER_ECORRUPT : rc;
}

int bench_consumer_next(struct bench_consumer *consumer)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    if (cli_interrupted())
        return BENCH_INTERRUPTED;
    int rc = stoker_loader_next(consumer->loader, &batch, -1);
    if (rc != STOKER_OK)
        return rc;
    rc = consumer->gpu != NULL ? use_on_gpu(consumer, &batch) : STOKER_OK;
    if (consumer->first_ns == 0)
        consumer->first_ns = stk_now_ns();
    const size_t image_bytes = bench_image_bytes(&batch);
    consumer->samples += batch.count;
    consumer->bytes += image_bytes;
    if (consumer->gpu == NULL) {
        rc = use(consumer, &batch, image_bytes);
        stoker_batch_release(&batch);
        return rc;
    }
    int released = stoker_batch_release_on(&batch, bench_gpu_stream(consumer->gpu->gpu));
    return rc != STOKER_OK ? rc : released;
}

int bench_consumer_finish(struct bench_consumer *consumer)
{
    return consumer->gpu == NULL ? STOKER_OK : bench_gpu_finish(consumer->gpu->gpu);
}

int bench_consumer_settle(struct bench_consumer *consumer, double seconds, bool *epoch_end)
{
    uint64_t end_ns = stk_now_ns() + (uint64_t)(seconds * 1e9);
    int rc = STOKER_OK;
    while (rc == STOKER_OK && stk_now_ns() < end_ns)
        rc = bench_consumer_next(consumer);
    *epoch_end = rc == STOKER_EPOCH_END;
    return rc == STOKER_EPOCH_END ? STOKER_OK : rc;
}

/* Consumes until the limits are met. Reading the clock costs as much as several small rows, so it
 * is read at the end of an epoch, and every few batches only if an epoch may be cut. */
static int consume(struct bench_consumer *consumer, const struct bench_window_limits *limits,
                   uint64_t begin_ns, struct bench_window *out, bool *at_end)
{
    enum { LOOK_EVERY = 16 };
    uint32_t wanted = limits->epochs > 0 ? limits->epochs : 1;
    uint32_t epochs = 0;
    uint64_t ended_ns = 0;
    for (uint32_t batches = 1;; batches++) {
        int rc = bench_consumer_next(consumer);
        if (rc != STOKER_OK && rc != STOKER_EPOCH_END)
            return rc;
        bool after_end = *at_end;
        *at_end = rc == STOKER_EPOCH_END;
        epochs += *at_end;
        if (!*at_end && !after_end && batches % LOOK_EVERY != 0)
            continue;
        uint64_t now_ns = stk_now_ns();
        if (after_end) { /* the time from an epoch's end to the next one's first batch */
            out->gap_ns += now_ns - ended_ns;
            out->gaps++;
        }
        ended_ns = now_ns;
        double seconds = (double)(now_ns - begin_ns) / 1e9;
        if (*at_end && epochs >= wanted && seconds >= limits->seconds)
            return STOKER_OK;
        if (limits->epochs == 0 && seconds >= limits->seconds_max)
            return STOKER_OK;
    }
}

int bench_consumer_window(struct bench_consumer *consumer, const struct bench_window_limits *limits,
                          struct bench_window *out)
{
    assert(limits->seconds_max >= limits->seconds);
    uint64_t samples = consumer->samples;
    uint64_t bytes = consumer->bytes;
    stoker_stats before = { .struct_size = sizeof(before) };
    stoker_stats after = { .struct_size = sizeof(after) };
    int rc = stoker_loader_stats(consumer->loader, &before);
    if (rc != STOKER_OK)
        return rc;
    uint64_t cpu_ns = bench_cpu_ns();
    uint64_t begin_ns = stk_now_ns();
    bool at_end = false;
    *out = (struct bench_window){ .samples = 0 };
    rc = consume(consumer, limits, begin_ns, out, &at_end);
    if (rc != STOKER_OK)
        return rc;
    out->wall_ns = stk_now_ns() - begin_ns;
    out->cpu_ns = bench_cpu_ns() - cpu_ns;
    out->samples = consumer->samples - samples;
    out->bytes = consumer->bytes - bytes;
    out->whole_epochs = at_end;
    rc = stoker_loader_stats(consumer->loader, &after);
    return rc == STOKER_OK ? stoker_stats_between(&before, &after, &out->stats) : rc;
}
