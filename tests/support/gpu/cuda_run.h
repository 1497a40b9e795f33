/* cuda_run.h - whole runs of a loader onto the stand-in's GPU, by a consumer that works as a
 * trainer does: its stream waits for the batch, a kernel reads it there, and the stream gives it
 * back.
 *
 * The kernel is a function that runs on the stream, late and for a random time. It hashes what
 * stk_batch_hash would on the CPU, so that runs can be compared.
 */
#ifndef STK_TEST_CUDA_RUN_H
#define STK_TEST_CUDA_RUN_H

#include <cuda_runtime_api.h>
#include <stoker/cuda.h>

#include "support/runs/scenario.h"
#include "support/standin_cuda/standin_cuda.h"

/* One launch. */
struct stk_cuda_kernel {
    stoker_batch batch; /* pointers of the device */
    uint64_t *hash;
    uint32_t work_us;
};

struct stk_cuda_consumer {
    cudaStream_t stream;
    uint32_t work_us; /* longest time that a kernel takes */
    struct stk_cuda_kernel kernels[STK_RUN_BATCHES_MAX];
};

static inline bool stk_cuda_consumer_init(struct stk_cuda_consumer *consumer, uint32_t work_us)
{
    consumer->work_us = work_us;
    standin_cuda_own_calls(true);
    const bool made =
        cudaStreamCreateWithFlags(&consumer->stream, cudaStreamNonBlocking) == cudaSuccess;
    standin_cuda_own_calls(false);
    return made;
}

static inline void stk_cuda_consumer_wait(struct stk_cuda_consumer *consumer)
{
    standin_cuda_own_calls(true);
    (void)cudaStreamSynchronize(consumer->stream);
    standin_cuda_own_calls(false);
}

static inline void stk_cuda_consumer_destroy(struct stk_cuda_consumer *consumer)
{
    standin_cuda_own_calls(true);
    (void)cudaStreamDestroy(consumer->stream);
    standin_cuda_own_calls(false);
}

static inline void stk_cuda_run_kernel(void *argument)
{
    const struct stk_cuda_kernel *kernel = argument;
    stoker_batch seen = kernel->batch;
    seen.images.data = standin_cuda_view(seen.images.data);
    if (seen.labels.data != NULL)
        seen.labels.data = standin_cuda_view(seen.labels.data);
    seen.ids = standin_cuda_view(seen.device_ids);
    if (kernel->work_us > 0)
        (void)usleep((useconds_t)(stk_mix64(seen.turn) % kernel->work_us));
    *kernel->hash = stk_batch_hash(&seen);
}

/* Launch the kernel that hashes the batch into *hash. */
static inline void stk_cuda_launch(struct stk_cuda_consumer *consumer, const stoker_batch *batch,
                                   uint64_t *hash)
{
    struct stk_cuda_kernel *kernel = &consumer->kernels[batch->turn % STK_RUN_BATCHES_MAX];
    *kernel =
        (struct stk_cuda_kernel){ .batch = *batch, .hash = hash, .work_us = consumer->work_us };
    standin_cuda_own_calls(true);
    (void)cudaLaunchHostFunc(consumer->stream, stk_cuda_run_kernel, kernel);
    standin_cuda_own_calls(false);
}

/* Up to `most` batches; the first error ends it. */
static inline void stk_cuda_run_on(stoker_loader *loader, struct stk_cuda_consumer *consumer,
                                   struct stk_run *run, uint32_t most)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    run->rc = STOKER_OK;
    while (run->batches < most && run->batches < STK_RUN_BATCHES_MAX) {
        run->rc = stoker_loader_next(loader, &batch, -1);
        if (run->rc == STOKER_EPOCH_END)
            run->epoch_ends++;
        if (run->rc == STOKER_EPOCH_END || run->rc == STOKER_TIMEOUT)
            continue;
        if (run->rc != STOKER_OK)
            break;
        run->samples += batch.count;
        run->rc = stoker_batch_wait_on(&batch, consumer->stream);
        if (run->rc == STOKER_OK)
            stk_cuda_launch(consumer, &batch, &run->hashes[run->batches++]);
        const int rc = stoker_batch_release_on(&batch, consumer->stream);
        if (run->rc == STOKER_OK && rc != STOKER_OK)
            run->rc = rc;
        if (run->rc != STOKER_OK)
            break;
    }
    stk_cuda_consumer_wait(consumer);
}

/* A loader's whole life, with a consumer whose kernels take up to work_us. */
static inline int stk_cuda_run(const stoker_dataset *dataset, const stoker_loader_options *options,
                               uint32_t work_us, struct stk_run *run)
{
    static struct stk_cuda_consumer consumer; /* too large for a stack */
    stoker_loader *loader = NULL;
    *run = (struct stk_run){ 0 };
    if (!stk_cuda_consumer_init(&consumer, work_us))
        return run->rc = STOKER_EDEVICE;
    run->rc = stoker_loader_create(&loader, dataset, options, &run->error);
    if (run->rc == STOKER_OK)
        stk_cuda_run_on(loader, &consumer, run, UINT32_MAX);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    return run->rc;
}

#endif
