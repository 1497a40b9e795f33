/* test_devices.c - what --list-devices shows: GPUs, or why there is none. On the stand-in. */
#include <cuda_runtime_api.h>

#include <stoker/trainer.h>

#include "support/leaks.h"
#include "support/standin_cuda/standin_cuda.h"

static const char *listed(void)
{
    static char text[4000];
    const size_t length = stoker_trainer_devices(text, sizeof(text));
    cr_assert_lt(length, sizeof(text));
    cr_assert_eq(length, strlen(text));
    return text;
}

static void check_has(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "no '%s' in\n%s", part, text);
}

CleanTest(trainer_cuda_devices, each_gpu_has_a_line)
{
    standin_cuda_reset(2);
    standin_cuda_memory(UINT64_C(3) << 29);
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, 1 << 29), cudaSuccess);
    const char *text = listed();
    check_has(text, "cpu  ");
    check_has(text, "\ncuda:0   Stand-in GPU 0, compute capability 9.0, 1.5 GiB of memory\n");
    check_has(text, "\ncuda:1   Stand-in GPU 1, compute capability 9.0, 1.5 GiB of memory\n");
    char versions[80];
    (void)snprintf(versions, sizeof(versions), "CUDA runtime %d.%d, driver for CUDA %d.%d\n",
                   CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, STANDIN_DRIVER / 1000,
                   STANDIN_DRIVER % 1000 / 10);
    check_has(text, versions);
    int device = -1;
    cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
    cr_assert_eq(device, 0); /* the caller's device is restored */
    cr_assert_eq(cudaFree(memory), cudaSuccess);
}

CleanTest(trainer_cuda_devices, without_one_the_reason_is_reported)
{
    standin_cuda_reset(0);
    check_has(listed(), "\ncuda     none: no CUDA-capable device is detected (100)\n");
    standin_cuda_no_driver(cudaErrorInsufficientDriver);
    const char *text = listed();
    check_has(
        text,
        "\ncuda     none: CUDA driver version is insufficient for CUDA runtime version (35)\n");
    check_has(text, ", no driver\n");
    standin_cuda_reset(1);
    standin_cuda_driver(11080);
    check_has(listed(), "\ncuda     none: the driver is for CUDA 11.8, libcudart is of ");
    cr_assert_eq(cudaPeekAtLastError(), cudaSuccess); /* nobody else's error */
}

/* A call that fails leaves its line short, and the others whole. */
CleanTest(trainer_cuda_devices, each_call_may_fail)
{
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        cr_assert_lt(nth, 40);
        standin_cuda_reset(2);
        standin_cuda_fail(nth, cudaErrorUnknown, false);
        check_has(listed(), "cuda");
        failed = standin_cuda_failed();
    }
}

CleanTest(trainer_cuda_devices, a_short_buffer_is_filled_and_the_length_returned)
{
    char text[12];
    standin_cuda_reset(1);
    const size_t length = stoker_trainer_devices(NULL, 0);
    cr_assert_eq(stoker_trainer_devices(text, sizeof(text)), length);
    cr_assert_eq(strlen(text), sizeof(text) - 1);
}
