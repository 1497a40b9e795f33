/* test_kept.c - batches and tensors returned by other threads while the consumer waits for them in
 * next(): WAIT, GROW with a small budget, and AUTO with tensors; in host memory and on the
 * stand-in's GPU.
 */
#include <pthread.h>

#include "loader/base/fault.h"
#include "support/gpu/cuda_run.h"
#include "support/runs/memory_limit.h"
#include "support/runs/return_queue.h"
#include "support/thread_check.h"

enum { SAMPLES = 64, THREADS = 2, BATCHES = 150 };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;

static void *return_all(void *argument)
{
    struct stk_returned item;
    while (stk_return_queue_take(argument, &item)) {
        if (item.batch.loader == NULL)
            item.tensor->deleter(item.tensor);
        else if (item.batch.device == STOKER_DEVICE_CPU)
            CHECK(stk_file_set_matches(&set, &item.batch));
        stoker_batch_release(&item.batch);
    }
    return NULL;
}

static void share(stoker_loader *loader, stoker_on_lent policy, struct stk_return_queue *queue,
                  uint64_t seed)
{
    static uint64_t hashes[BATCHES];
    for (uint32_t done = 0; done < BATCHES;) {
        struct stk_returned item = { .batch = STOKER_BATCH_INIT };
        const int rc = stoker_loader_next(loader, &item.batch, 20000);
        if (rc == STOKER_EPOCH_END || (rc == STOKER_BUSY && policy == STOKER_ON_LENT_AUTO))
            continue;
        CHECK(rc == STOKER_OK);
        if (item.batch.device == STOKER_DEVICE_CUDA) {
            CHECK(stoker_batch_wait_on(&item.batch, consumer.stream) == STOKER_OK);
            stk_cuda_launch(&consumer, &item.batch, &hashes[done]);
        }
        if (stk_mix64(seed + done) % 2 == 0 || policy == STOKER_ON_LENT_AUTO) {
            struct stk_returned tensor = { .batch = { .loader = NULL } };
            CHECK(stoker_batch_to_dlpack(&item.batch, STOKER_TENSOR_IMAGES, consumer.stream,
                                         &tensor.tensor) == STOKER_OK);
            stk_return_queue_put(queue, tensor);
        }
        if (policy == STOKER_ON_LENT_AUTO)
            stoker_batch_release(&item.batch);
        else
            stk_return_queue_put(queue, item);
        done++;
    }
}

static void live(uint64_t seed)
{
    static const stoker_on_lent policies[] = { STOKER_ON_LENT_WAIT, STOKER_ON_LENT_GROW,
                                               STOKER_ON_LENT_AUTO };
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.device = seed % 2 == 0 ? STOKER_DEVICE_CPU : STOKER_DEVICE_CUDA,
                          .on_lent = policies[seed / 2 % 3]);
    struct stk_return_queue queue = STK_RETURN_QUEUE_INIT;
    pthread_t threads[THREADS];
    options.batch_size = 4;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    options.num_workers = (int32_t)(seed % 3);
    options.prefetch_batches = 2 + (uint32_t)(seed % 4);
    standin_cuda_reset(1);
    standin_cuda_delay(30);
    CHECK(stk_cuda_consumer_init(&consumer, 50));
    stk_limit_kept(set.dataset, &options, 16384); /* a few slots */
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, return_all, &queue) == 0);
    share(loader, options.on_lent, &queue, seed);
    stk_return_queue_end(&queue);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    stk_cuda_consumer_wait(&consumer);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    CHECK(standin_cuda_violations() == 0);
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
    return seed >= 6 ? 0 : 1;
}
