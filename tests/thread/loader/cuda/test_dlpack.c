/* test_dlpack.c - deleters that come from another thread than the consumer's, in any order with
 * releases, the next batches and destroy; on the CPU and on a GPU, now and then while its stream
 * records a graph.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "loader/base/fault.h"
#include "support/gpu/cuda_run.h"
#include "support/runs/return_queue.h"
#include "support/thread_check.h"

enum { SAMPLES = 64, BATCHES = 200 };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;

static _Atomic uint32_t deleted;

static void *delete_all(void *argument)
{
    struct stk_returned item;
    while (stk_return_queue_take(argument, &item)) {
        item.tensor->deleter(item.tensor);
        atomic_fetch_add(&deleted, 1U);
    }
    return NULL;
}

/* A recording ends while deleters run, and begins while none does: what a stream queues must not
 * depend on when it begins. */
static void start_recording(uint32_t put)
{
    while (atomic_load(&deleted) < put)
        (void)sched_yield();
    standin_cuda_own_calls(true);
    CHECK(cudaStreamBeginCapture(consumer.stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    standin_cuda_own_calls(false);
}

static void end_recording(void)
{
    cudaGraph_t graph = NULL;
    standin_cuda_own_calls(true);
    CHECK(cudaStreamEndCapture(consumer.stream, &graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    standin_cuda_own_calls(false);
}

static void share(stoker_loader *loader, struct stk_return_queue *queue, uint64_t seed)
{
    static uint64_t hashes[BATCHES];
    uint32_t put = 0;
    atomic_store(&deleted, 0U);
    for (uint32_t done = 0; done < BATCHES;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END || rc == STOKER_BUSY)
            continue;
        CHECK(rc == STOKER_OK);
        if (batch.device == STOKER_DEVICE_CPU)
            CHECK(stk_file_set_matches(&set, &batch));
        static const uint32_t parts[] = { STOKER_TENSOR_IMAGES, STOKER_TENSOR_LABELS,
                                          STOKER_TENSOR_IDS };
        DLManagedTensorVersioned *tensors[3];
        unsigned made = 0;
        for (unsigned part = 0; part < 3; part++) {
            if (stk_mix64(seed + 3 * done + part) % 3 == 0)
                continue;
            CHECK(stoker_batch_to_dlpack(&batch, parts[part], consumer.stream, &tensors[made++]) ==
                  STOKER_OK);
            if (part == 0 && batch.device == STOKER_DEVICE_CUDA)
                stk_cuda_launch(&consumer, &batch, &hashes[done]);
        }
        const bool records = batch.device == STOKER_DEVICE_CUDA && done % 5 == 2;
        if (records)
            start_recording(put);
        put += made;
        while (made > 0)
            stk_return_queue_put(queue, (struct stk_returned){ .tensor = tensors[--made] });
        stoker_batch_release(&batch);
        if (records)
            end_recording();
        done++;
    }
}

static void live(uint64_t seed)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.device = seed % 2 == 0 ? STOKER_DEVICE_CPU : STOKER_DEVICE_CUDA,
                          .batch_size = 4, .epochs = STOKER_EPOCHS_ENDLESS, .num_workers = 2,
                          .prefetch_batches = 2 + (uint32_t)(seed % 3));
    struct stk_return_queue queue = STK_RETURN_QUEUE_INIT;
    pthread_t thread;
    standin_cuda_reset(1);
    standin_cuda_delay(30);
    CHECK(stk_cuda_consumer_init(&consumer, 50));
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    CHECK(pthread_create(&thread, NULL, delete_all, &queue) == 0);
    share(loader, &queue, seed);
    if (seed % 4 < 2)
        stk_return_queue_end(&queue);
    stoker_loader_destroy(&loader); /* while tensors are out, perhaps */
    stk_return_queue_end(&queue);
    CHECK(pthread_join(thread, NULL) == 0);
    stk_cuda_consumer_wait(&consumer);
    stk_cuda_consumer_destroy(&consumer);
    CHECK(standin_cuda_live() == 0);
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    uint64_t seed = 0;
    CHECK(stk_file_set_make(&set, SAMPLES, 3, 5, 0));
    while (seed < 60 && stk_time_left(start_ns))
        live(seed++);
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu lives\n", (unsigned long long)seed);
    return seed >= 4 ? 0 : 1;
}
