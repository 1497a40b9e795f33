/* test_standin.c - the stand-in for CUDA runs kernels from the module that
 * STOKER_TEST_KERNEL_SOURCE names, also in a graph; and what the harness finds in them ends the
 * program.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cuda/cuda_runtime.h"
#include "support/standin_cuda/standin_cuda.h"

enum { THREADS = 64, BLOCKS = 3, COUNT = BLOCKS * THREADS };

/* The argument of all examples (cuda_threads/examples.cpp). */
struct example {
    uint32_t *out;
    const uint32_t *in;
    uint32_t count;
    uint32_t *ticket;
};

/* A test's own function beside the module's kernels. */
static uint32_t called;

static void count_call(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    (void)argument;
    called++;
}

static void check(cudaError_t code)
{
    cr_assert_eq(code, cudaSuccess);
}

static cudaError_t launch(cudaStream_t stream, const char *name, struct example a)
{
    static const char code[] = "any";
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    cudaKernel_t kernel;
    const char *why = NULL;
    void *arguments[] = { &a };
    cr_assert_eq(stk_cuda_runtime_load(&cuda, &why), 0, "%s", why);
    check(cuda.cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
    check(cuda.cudaLibraryGetKernel(&kernel, library, name));
    const cudaError_t rc =
        stk_cuda_launch_kernel(&cuda, (const void *)kernel, (dim3){ BLOCKS, 1, 1 },
                               (dim3){ THREADS, 1, 1 }, arguments, stream);
    check(cuda.cudaLibraryUnload(library));
    return rc;
}

static cudaStream_t begin(struct example *a, const uint32_t *numbers)
{
    void *in, *out;
    cudaStream_t stream;
    standin_cuda_reset(1);
    standin_cuda_use_kernels();
    standin_cuda_add_kernel(
        &(struct standin_cuda_kernel){ "of_no_module", sizeof(struct example), count_call });
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&in, COUNT * sizeof(*numbers)));
    check(cudaMalloc(&out, COUNT * sizeof(*numbers)));
    check(cudaMemcpyAsync(in, numbers, COUNT * sizeof(*numbers), cudaMemcpyHostToDevice, stream));
    *a = (struct example){ .out = out, .in = in, .count = COUNT };
    return stream;
}

static void fill(uint32_t *numbers)
{
    for (uint32_t i = 0; i < COUNT; i++)
        numbers[i] = i * i;
}

static void expect_copy(cudaStream_t stream, const struct example *a, const uint32_t *numbers)
{
    uint32_t found[COUNT];
    check(cudaMemcpyAsync(found, a->out, sizeof(found), cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    cr_assert_eq(memcmp(found, numbers, sizeof(found)), 0);
}

Test(standin_from_source, a_launch_and_a_graph)
{
    uint32_t numbers[COUNT];
    struct example a;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cr_assert_eq(setenv("STOKER_TEST_KERNEL_SOURCE", STOKER_TEST_EXAMPLES, 1), 0);
    fill(numbers);
    cudaStream_t stream = begin(&a, numbers);
    check(launch(stream, "copies", a));
    expect_copy(stream, &a, numbers);

    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    check(launch(stream, "copies", a));
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&exec, graph, 0));
    for (int turn = 0; turn < 3; turn++) { /* a replay has its own copy of the argument */
        check(cudaMemsetAsync(a.out, 0, COUNT * sizeof(*numbers), stream));
        check(cudaGraphLaunch(exec, stream));
        expect_copy(stream, &a, numbers);
    }
    cr_assert_eq(called, 0);
    check(launch(stream, "of_no_module", a));
    check(cudaStreamSynchronize(stream));
    cr_assert_eq(called, 1);
}

/* Stale bytes of an address in the padding behind a number do not make it one. */
Test(standin_from_source, a_number_is_not_taken_for_an_address)
{
    static const uint32_t values[] = { 0, 1, COUNT, 0x3f800000 /* 1.0F */, INT32_MAX };
    static const size_t sizes[] = { 1, 4097, 1 << 20, 1 << 30 };
    uint32_t numbers[COUNT];
    struct example a;
    (void)setenv("STOKER_TEST_KERNEL_SOURCE", STOKER_TEST_EXAMPLES, 1);
    fill(numbers);
    cudaStream_t stream = begin(&a, numbers);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        void *memory;
        check(cudaMalloc(&memory, sizes[s]));
        const uint64_t upper = (uintptr_t)memory >> 32;
        cr_assert_neq(upper >> 16, 0); /* no address of the host, of 48 bits, begins so */
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
            cr_assert_null(standin_cuda_view((void *)(uintptr_t)(upper << 32 | values[v])));
    }
    memcpy((char *)&a.count + sizeof(a.count), (char *)&a.out + sizeof(a.out) / 2, sizeof(a.count));
    check(launch(stream, "copies", a));
    expect_copy(stream, &a, numbers);
}

/* Device memory ends where its allocation does, also if another follows. */
Test(standin_from_source, a_finding_ends_the_program, .signal = SIGABRT)
{
    uint32_t numbers[COUNT];
    struct example a;
    (void)setenv("STOKER_TEST_KERNEL_SOURCE", STOKER_TEST_EXAMPLES, 1);
    fill(numbers);
    cudaStream_t stream = begin(&a, numbers);
    (void)launch(stream, "reads_beyond", a);
    (void)cudaStreamSynchronize(stream);
}

Test(standin_from_source, a_module_that_is_not_there_ends_the_program, .signal = SIGABRT)
{
    (void)setenv("STOKER_TEST_KERNEL_SOURCE", STOKER_TEST_EXAMPLES ".not", 1);
    standin_cuda_use_kernels();
}
