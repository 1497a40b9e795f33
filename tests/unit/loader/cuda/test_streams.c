/* test_streams.c - kernels behind the copies have a stream of their own: they come after their copy
 * and before the consumer, and no copy waits for the kernels of the batch before.
 *
 * Method: the stand-in's kernels stop at a gate until the test opens it.
 */
#include <pthread.h>

#include "loader/api/loader.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

enum { KERNELS_MAX = 32, TAKEN = 2 };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;
static struct stk_run expected, found;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool gate_is_open;      /* guarded by lock */
static _Atomic uint32_t ended; /* kernels */

static void begin(void)
{
    standin_cuda_reset(1);
    cr_assert(stk_file_set_make(&set, 100, 4, 5, 3));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0);
    stk_test_check_leaks();
}

TestSuite(cuda_streams, .init = begin, .fini = finish);

static void run_behind_gate(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    (void)argument;
    pthread_mutex_lock(&lock);
    while (!gate_is_open)
        pthread_cond_wait(&opened, &lock);
    pthread_mutex_unlock(&lock);
    standin_cuda_run_source();
    atomic_fetch_add(&ended, 1U);
}

static void use_gated_kernels(void)
{
    static struct standin_cuda_kernel kernels[KERNELS_MAX + 1];
    for (int i = 0; stk_kernels[i].name != NULL && i < KERNELS_MAX; i++)
        kernels[i] =
            (struct standin_cuda_kernel){ stk_kernels[i].name, stk_kernels[i].arguments_bytes,
                                          run_behind_gate };
    standin_cuda_kernels(kernels);
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&lock);
    gate_is_open = open;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
}

static stoker_loader_options converting(void)
{
    return stk_small_options(.device = STOKER_DEVICE_CUDA, .dtype = STOKER_DTYPE_FLOAT32,
                             .convert_on_device = STOKER_SWITCH_ON, .num_workers = 1,
                             .prefetch_batches = 4, .epochs = 1);
}

Test(cuda_streams, no_copy_waits_for_the_kernels_of_the_batch_before)
{
    if (!stk_cuda_kernels_built())
        return;
    stoker_loader_options options = converting();
    stoker_batch batches[TAKEN] = { STOKER_BATCH_INIT, STOKER_BATCH_INIT };
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    set_gate(false);
    use_gated_kernels();
    stoker_loader *loader = loader_of(set.dataset, &options);
    for (int i = 0; i < TAKEN; i++) {
        cr_assert_eq(stoker_loader_next(loader, &batches[i], -1), STOKER_OK);
        cr_assert_eq(stoker_batch_wait_on(&batches[i], consumer.stream), STOKER_OK);
        stk_cuda_launch(&consumer, &batches[i], &found.hashes[i]);
    }
    while (loader->transfer.retired < TAKEN) /* copied, and their slots are free */
        cr_assert_eq(stk_transfer_retire(&loader->transfer), 0);
    cr_assert_eq(atomic_load(&ended), 0);
    for (int i = 0; i < TAKEN; i++) /* the stream waits for the kernels */
        cr_assert_eq(found.hashes[i], 0);
    set_gate(true);
    for (int i = 0; i < TAKEN; i++)
        cr_assert_eq(stoker_batch_release_on(&batches[i], consumer.stream), STOKER_OK);
    found.batches = TAKEN;
    stk_cuda_run_on(loader, &consumer, &found, UINT32_MAX);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    options.device = STOKER_DEVICE_CPU;
    options.convert_on_device = STOKER_SWITCH_AUTO;
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    for (uint32_t i = 0; i < expected.batches; i++)
        cr_assert_eq(found.hashes[i], expected.hashes[i], "batch %u", (unsigned)i);
}

/* A consumer that releases batches unseen has waited for none of their kernels: the next copy into
 * the buffer has to. */
Test(cuda_streams, a_buffer_is_refilled_after_its_kernels_even_if_nobody_waited_for_them)
{
    if (!stk_cuda_kernels_built())
        return;
    const stoker_loader_options options = converting();
    set_gate(false);
    use_gated_kernels();
    stoker_loader *loader = loader_of(set.dataset, &options);
    const uint32_t buffers = loader->transfer.buffer_count;
    for (uint32_t i = 0; i < buffers; i++) {
        stoker_batch batch = next_batch(loader);
        stoker_batch_release(&batch);
    }
    while (loader->transfer.slots->head <= buffers) { /* until the first buffer is filled again */
        stoker_batch batch = next_batch(loader);
        stoker_batch_release(&batch);
    }
    while (loader->transfer.retired < buffers)
        cr_assert_eq(stk_transfer_retire(&loader->transfer), 0);
    (void)usleep(2000); /* a copy that waits for nothing would be over */
    cr_assert_eq(stk_transfer_retire(&loader->transfer), 0);
    cr_assert_eq(loader->transfer.retired, buffers);
    set_gate(true);
    stoker_loader_destroy(&loader);
}

Test(cuda_streams, kernels_come_first_on_the_gpu)
{
    if (!stk_cuda_kernels_built())
        return;
    const stoker_loader_options options = converting();
    standin_cuda_use_kernels();
    cr_assert_eq(stk_cuda_run(set.dataset, &options, 100, &found), STOKER_FINISHED);
    cr_assert_gt(standin_cuda_launches(), 0);
    cr_assert_eq(standin_cuda_launch_priority(), STANDIN_PRIORITY_GREATEST);
}
