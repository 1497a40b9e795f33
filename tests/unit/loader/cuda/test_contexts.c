/* test_contexts.c - a loader for GPU 1 initializes no other GPU, and leaves the thread as it was.
 *
 * The consumer's thread has chosen no device: it is at GPU 0, which nothing has initialized.
 */
#include <pthread.h>

#include "loader/api/lend/dlpack_layout.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

enum { OTHER = 1 };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;
static struct stk_run expected, found;

static void begin(void)
{
    cr_assert(stk_file_set_make(&set, 60, 4, 5, 3));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(cuda_contexts, .init = begin, .fini = finish);

/* A stream of GPU 1, made by calls that do not count. */
static void make_consumer(void)
{
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaSetDevice(OTHER), cudaSuccess);
    cr_assert(stk_cuda_consumer_init(&consumer, 100));
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaSetDevice(0), cudaSuccess);
    standin_cuda_own_calls(false);
}

static int current(void)
{
    int device = -1;
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
    standin_cuda_own_calls(false);
    return device;
}

static stoker_loader_options options_of(stoker_device device)
{
    return stk_small_options(.device = device, .device_index = OTHER, .num_workers = 2,
                             .epochs = 2);
}

static void expect_only_the_loaders(const char *what)
{
    cr_assert(!standin_cuda_initialized(0), "%s: GPU 0 was initialized", what);
    cr_assert(standin_cuda_initialized(OTHER), "%s", what);
    cr_assert_eq(standin_cuda_pushed(), 0, "%s", what);
    cr_assert_eq(current(), 0, "%s", what);
}

/* The whole life of a loader on GPU 1. */
static void run(const stoker_loader_options *options, const char *what)
{
    make_consumer();
    found = (struct stk_run){ 0 };
    stoker_loader *loader = loader_of(set.dataset, options);
    cr_assert_eq(current(), 0);
    stk_cuda_run_on(loader, &consumer, &found, UINT32_MAX);
    cr_assert_eq(found.rc, STOKER_FINISHED, "%s", what);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    cr_assert(stk_runs_equal(&expected, &found), "%s", what);
}

static void run_on_the_cpu(stoker_loader_options options)
{
    options.device = STOKER_DEVICE_CPU;
    options.convert_on_device = STOKER_SWITCH_AUTO;
    options.cache = STOKER_CACHE_NONE;
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
}

Test(cuda_contexts, work_on_one_gpu_initializes_no_other)
{
    stoker_loader_options options = options_of(STOKER_DEVICE_CUDA);
    run_on_the_cpu(options);
    for (int blocks = 0; blocks <= 1; blocks++) {
        standin_cuda_reset(2);
        options.non_blocking = blocks == 0;
        run(&options, "copies");
        expect_only_the_loaders("copies");
    }
    if (!stk_cuda_kernels_built())
        return;
    standin_cuda_reset(2);
    standin_cuda_use_kernels();
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.convert_on_device = STOKER_SWITCH_ON;
    options.cache = STOKER_CACHE_DEVICE;
    run_on_the_cpu(options);
    run(&options, "kernels");
    expect_only_the_loaders("kernels");
}

Test(cuda_contexts, page_locked_memory_initializes_no_other)
{
    const stoker_loader_options options = options_of(STOKER_DEVICE_CUDA_HOST);
    standin_cuda_reset(2);
    make_consumer();
    stoker_loader *loader = loader_of(set.dataset, &options);
    for (int i = 0; i < 5; i++) {
        stoker_batch batch = next_batch(loader);
        cr_assert_eq(stoker_batch_release_on(&batch, consumer.stream), STOKER_OK);
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    expect_only_the_loaders("cuda-host");
}

static void *delete_elsewhere(void *tensor)
{
    DLManagedTensorVersioned *const managed = tensor;
    managed->deleter(managed);
    cr_assert_eq(standin_cuda_pushed(), 0);
    return NULL;
}

/* The deleter runs in a thread that never heard of a device, and after destroy. */
Test(cuda_contexts, a_tensor_of_one_gpu_initializes_no_other)
{
    const stoker_loader_options options = options_of(STOKER_DEVICE_CUDA);
    standin_cuda_reset(2);
    make_consumer();
    stoker_loader *loader = loader_of(set.dataset, &options);
    for (int i = 0; i < 5; i++) {
        DLManagedTensorVersioned *tensor = NULL;
        stoker_batch batch = next_batch(loader);
        pthread_t thread;
        cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, consumer.stream, &tensor), STOKER_OK);
        stoker_batch_release(&batch);
        if (i == 4)
            stoker_loader_destroy(&loader);
        cr_assert_eq(pthread_create(&thread, NULL, delete_elsewhere, tensor), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
    }
    stk_cuda_consumer_destroy(&consumer);
    expect_only_the_loaders("tensors");
}

/* cudaSetDevice() restores the device, and initializes it. */
Test(cuda_contexts, a_runtime_without_the_drivers_functions_will_do)
{
    const stoker_loader_options options = options_of(STOKER_DEVICE_CUDA);
    run_on_the_cpu(options);
    standin_cuda_reset(2);
    standin_cuda_no_contexts(true);
    run(&options, "cudaSetDevice");
    cr_assert_eq(current(), 0);
    cr_assert(standin_cuda_initialized(OTHER));
    cr_assert(standin_cuda_initialized(0));
}
