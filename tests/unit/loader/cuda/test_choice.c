/* test_choice.c - which device a loader takes, and that it says why it is not a GPU. */
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"

static struct stk_file_set set;
static stoker_error error;
static stoker_stats stats;

static void begin(void)
{
    standin_cuda_reset(2);
    unsetenv("STOKER_DEVICE");
    unsetenv("STOKER_CUDART");
    cr_assert(stk_file_set_make(&set, 40, 4, 5, 0));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(cuda_choice, .init = begin, .fini = finish);

/* Create and destroy; on success stats are filled in, on failure error is. */
static int try_device(stoker_device device, uint32_t index)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options = stk_small_options(.device = device, .device_index = index);
    error = (stoker_error){ .code = 0 };
    const int rc = stoker_loader_create(&loader, set.dataset, &options, &error);
    if (rc == STOKER_OK) {
        stats = (stoker_stats){ .struct_size = sizeof(stats) };
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    }
    stoker_loader_destroy(&loader);
    return rc;
}

static void expect(stoker_device device, uint32_t index, const char *name, const char *reason)
{
    const int rc = try_device(device, index);
    cr_assert_eq(rc, STOKER_OK, "%s", error.message);
    cr_assert_str_eq(stats.device, name);
    cr_assert(strstr(stats.device_reason, reason) != NULL, "%s", stats.device_reason);
    cr_assert_eq(stats.device_bytes > 0, device != STOKER_DEVICE_CPU && name[1] == 'u');
}

static void expect_error(stoker_device device, uint32_t index, int code, const char *reason)
{
    cr_assert_eq(try_device(device, index), code);
    cr_assert_eq(error.code, code);
    cr_assert(strstr(error.message, reason) != NULL, "%s", error.message);
}

Test(cuda_choice, options_and_environment)
{
    expect(STOKER_DEVICE_CPU, 0, "cpu", "asked for");
    expect(STOKER_DEVICE_CUDA, 1, "cuda:1", "asked for");
    expect(STOKER_DEVICE_AUTO, 0, "cuda:0", "the first GPU");
    setenv("STOKER_DEVICE", "cuda:1", 1);
    expect(STOKER_DEVICE_AUTO, 0, "cuda:1", "STOKER_DEVICE");
    expect(STOKER_DEVICE_CPU, 0, "cpu", "asked for"); /* the environment only fills in AUTO */
    setenv("STOKER_DEVICE", "cuda", 1);
    expect(STOKER_DEVICE_AUTO, 0, "cuda:0", "STOKER_DEVICE");
    setenv("STOKER_DEVICE", "", 1);
    expect(STOKER_DEVICE_AUTO, 0, "cuda:0", "the first GPU");
    setenv("STOKER_DEVICE", "cpu", 1);
    cr_assert_eq(try_device(STOKER_DEVICE_AUTO, 0), STOKER_OK);
    cr_assert_str_eq(stats.device, "cpu");
}

Test(cuda_choice, names_that_mean_nothing)
{
    static const char *const names[] = { "gpu",     "cuda:",   "cuda:x", "cuda:1x",
                                         "cuda: 1", "cuda:-1", "CUDA",   "cuda:99999999999" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv("STOKER_DEVICE", names[i], 1);
        expect_error(STOKER_DEVICE_AUTO, 0, STOKER_EINVAL, names[i]);
    }
}

Test(cuda_choice, devices_that_are_not_there)
{
    expect_error(STOKER_DEVICE_CUDA, 2, STOKER_EDEVICE, "there are 2 GPUs");
    setenv("STOKER_DEVICE", "cuda:7", 1);
    expect_error(STOKER_DEVICE_AUTO, 0, STOKER_EDEVICE, "named by STOKER_DEVICE: there are 2");
}

Test(cuda_choice, without_a_gpu)
{
    standin_cuda_reset(0);
    expect(STOKER_DEVICE_AUTO, 0, "cpu", "no GPU: no CUDA-capable device is detected (100)");
    expect_error(STOKER_DEVICE_CUDA, 0, STOKER_EDEVICE, "no CUDA-capable device is detected");
}

Test(cuda_choice, without_a_driver)
{
    standin_cuda_no_driver(cudaErrorInsufficientDriver);
    expect(STOKER_DEVICE_AUTO, 0, "cpu", "no GPU: CUDA driver version is insufficient");
    expect_error(STOKER_DEVICE_CUDA, 0, STOKER_EDEVICE, "CUDA driver version is insufficient");
    cr_assert_eq(cudaPeekAtLastError(), cudaSuccess); /* not left behind for the program */
}

Test(cuda_choice, without_the_runtime)
{
    setenv("STOKER_CUDART", "/nowhere/libcudart.so", 1);
    expect(STOKER_DEVICE_AUTO, 0, "cpu", "no GPU: /nowhere/libcudart.so: cannot open");
    expect_error(STOKER_DEVICE_CUDA, 0, STOKER_EDEVICE, "/nowhere/libcudart.so: cannot open");
}

/* A library that is none of CUDA's. */
Test(cuda_choice, with_another_library_of_that_name)
{
    setenv("STOKER_CUDART", "libm.so.6", 1);
    expect(STOKER_DEVICE_AUTO, 0, "cpu", "undefined symbol: cudaGetDeviceCount");
    expect_error(STOKER_DEVICE_CUDA, 0, STOKER_EDEVICE, "cudaGetDeviceCount");
}

/* What AUTO chose delivers. */
Test(cuda_choice, the_same_loop_serves_both_devices)
{
    static struct stk_run on_gpu;
    static struct stk_run on_cpu;
    stoker_loader_options options = stk_small_options(.device = STOKER_DEVICE_AUTO);
    cr_assert_eq(stk_cuda_run(set.dataset, &options, 100, &on_gpu), STOKER_FINISHED);
    standin_cuda_reset(1);
    options.device = STOKER_DEVICE_CPU;
    cr_assert_eq(stk_run(set.dataset, &options, &on_cpu), STOKER_FINISHED);
    cr_assert(stk_runs_equal(&on_cpu, &on_gpu));
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_eq(batch.device, STOKER_DEVICE_CPU);
    cr_assert_eq(batch.device_ids, batch.ids);
    cr_assert_eq(stoker_batch_wait_on(&batch, NULL), STOKER_OK);
    cr_assert_eq(stoker_batch_release_on(&batch, NULL), STOKER_OK);
    cr_assert_eq(stoker_batch_wait_on(&batch, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_release_on(&batch, NULL), STOKER_OK);
    stoker_loader_destroy(&loader);
}
