/* test_cards.c - what a GPU is, if kernels run on it, and what is said if the driver is too old. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/base/cuda/cuda_card.h"
#include "support/standin_cuda/standin_cuda.h"

static char why[192];

struct row {
    int major, minor, driver, toolkit;
    bool runs;
    const char *targets;
    const char *reason; /* part of it, if it does not run */
};

static const char all[] = "7.5 8.0 8.6 8.9 9.0 10.0 12.0 PTX 9.0";

static const struct row rows[] = {
    /* Machine code: the same major number, and the minor one at least. */
    { 7, 5, 13000, 13000, true, all, NULL },
    { 8, 0, 13000, 13000, true, all, NULL },
    { 8, 7, 13000, 13000, true, all, NULL },
    { 8, 9, 13000, 13000, true, all, NULL },
    { 9, 0, 13000, 13000, true, all, NULL },
    { 10, 3, 13000, 13000, true, all, NULL },
    { 12, 1, 13000, 13000, true, all, NULL },
    { 7, 0, 13000, 13000, false, all,
      "compute capability 7.0; the kernels of this build are for 7.5 8.0 " },
    { 5, 2, 13000, 13000, false, all, "compute capability 5.2" },
    { 8, 0, 13000, 13000, false, "7.5 8.6", "compute capability 8.0" },
    { 8, 9, 13000, 13000, false, "7.5", "compute capability 8.9" },
    { 10, 0, 13000, 13000, false, "1.0", "compute capability 10.0" },
    /* PTX: that capability or a later one. */
    { 11, 0, 13000, 13000, true, all, NULL },
    { 13, 0, 13000, 13000, true, all, NULL },
    { 8, 0, 13000, 13000, true, "PTX 7.5", NULL },
    { 9, 0, 13000, 13000, true, "8.0 PTX 8.0 12.0", NULL },
    { 7, 0, 13000, 13000, false, "PTX 7.5", "are for PTX 7.5" },
    { 9, 0, 13000, 13000, false, "8.0 PTX 10.0", "compute capability 9.0" },
    { 9, 0, 13000, 13000, false, "", "compute capability 9.0" },
    /* Drivers: the toolkit's major version for machine code, the whole version for PTX. */
    { 9, 0, 12090, 13010, false, all,
      "the driver is for CUDA 12.9, the kernels of this build need CUDA 13: " },
    { 9, 0, 12090, 13010, false, all, "install NVIDIA's driver 580 or later" },
    { 9, 0, 12000, 12080, true, all, NULL },
    { 9, 0, 13000, 13010, true, all, NULL },
    { 9, 0, 13000, 12080, true, all, NULL },
    { 11, 0, 13000, 13010, false, all,
      "for CUDA 13.0; to compile the kernels of this build for Card it must be for CUDA 13.1" },
    { 11, 0, 13010, 13010, true, all, NULL },
    { 11, 0, 14000, 13010, true, all, NULL },
};

Test(cuda_cards, kernels_run_where_the_programming_guide_says)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const struct stk_cuda_card card = {
            .name = "Card", .major = row->major, .minor = row->minor, .driver = row->driver
        };
        why[0] = '\0';
        cr_assert_eq(stk_cuda_card_runs(&card, row->toolkit, row->targets, why, sizeof(why)),
                     row->runs, "row %zu: %s", i, why);
        cr_assert(row->runs || strstr(why, row->reason) != NULL, "row %zu: %s", i, why);
    }
}

static struct stk_cuda_runtime loaded(void)
{
    struct stk_cuda_runtime runtime;
    const char *reason = NULL;
    cr_assert_eq(stk_cuda_runtime_load(&runtime, &reason), STOKER_OK, "%s", reason);
    return runtime;
}

Test(cuda_cards, a_gpu_is_described)
{
    standin_cuda_reset(2);
    standin_cuda_capability(12, 1);
    standin_cuda_reads_pageable(true);
    const struct stk_cuda_runtime runtime = loaded();
    struct stk_cuda_card card;
    cr_assert_eq(stk_cuda_card_read(&runtime, 1, &card), cudaSuccess);
    cr_assert_str_eq(card.name, "Stand-in GPU 1");
    cr_assert_eq(card.id[0], 'G');
    cr_assert_eq(card.id[15], 1);
    cr_assert_eq(card.memory_bytes, UINT64_C(1) << 34);
    cr_assert_eq(card.major, 12);
    cr_assert_eq(card.minor, 1);
    cr_assert_eq(card.pci_domain, STANDIN_PCI_DOMAIN);
    cr_assert_eq(card.pci_bus, 2);
    cr_assert_eq(card.pci_device, 0);
    cr_assert(card.reads_pageable);
    cr_assert_eq(card.driver, STANDIN_DRIVER);
    cr_assert_neq(stk_cuda_card_read(&runtime, 2, &card), cudaSuccess);
}

Test(cuda_cards, an_old_driver_is_named_with_what_to_install)
{
    enum { MAJOR = CUDART_VERSION / 1000 };
    int count = 0;
    char expected[192];
    standin_cuda_reset(1);
    standin_cuda_driver((MAJOR - 1) * 1000 + 40);
    const struct stk_cuda_runtime runtime = loaded();
    cr_assert_eq(stk_cuda_count(&runtime, &count, why, sizeof(why)), STOKER_EDEVICE);
    (void)snprintf(
        expected, sizeof(expected),
        "the driver is for CUDA %d.4, libcudart is of %d.%d: install NVIDIA's driver %d or "
        "later, or build with CUDA %d",
        MAJOR - 1, MAJOR, CUDART_VERSION % 1000 / 10, MAJOR == 13 ? 580 : 525, MAJOR - 1);
    cr_assert_str_eq(why, expected);
    cr_assert_eq(cudaPeekAtLastError(), cudaSuccess);
    standin_cuda_driver(MAJOR * 1000);
    cr_assert_eq(stk_cuda_count(&runtime, &count, why, sizeof(why)), STOKER_OK);
    cr_assert_eq(count, 1);
}

/* ---- kernels by the runtime and by the driver ---- */

static _Atomic int runs;

static void run(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    runs += *(const int *)argument;
}

/* A thread whose first call is the launch has no context yet, which the driver does not make. */
static void *launch_first(void *argument)
{
    const struct stk_cuda_runtime runtime = loaded();
    int number = 7;
    void *arguments[] = { &number };
    const cudaError_t code = stk_cuda_launch_kernel(&runtime, argument, (dim3){ 1, 1, 1 },
                                                    (dim3){ 32, 1, 1 }, arguments, NULL);
    cr_assert_eq(code, cudaSuccess, "%d", (int)code);
    return NULL;
}

Test(cuda_cards, kernels_are_loaded_and_launched)
{
    static const struct standin_cuda_kernel kernels[] = { { "one", sizeof(int), run },
                                                          { NULL, 0, NULL } };
    static const int image = 1;
    cudaLibrary_t library = NULL;
    cudaKernel_t kernel = NULL;
    pthread_t thread;
    standin_cuda_reset(1);
    standin_cuda_kernels(kernels);
    const struct stk_cuda_runtime runtime = loaded();
    const bool by_driver = dlsym(RTLD_DEFAULT, "cudaLibraryLoadData") == NULL;
    cr_assert_eq(runtime.cuLaunchKernel != NULL, by_driver);
    cr_assert_eq(runtime.cudaLibraryLoadData(&library, &image, NULL, NULL, 0, NULL, NULL, 0),
                 cudaSuccess);
    cr_assert_eq(runtime.cudaLibraryGetKernel(&kernel, library, "two"), cudaErrorSymbolNotFound);
    cr_assert_eq(runtime.cudaLibraryGetKernel(&kernel, library, "one"), cudaSuccess);
    cr_assert_eq(pthread_create(&thread, NULL, launch_first, kernel), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(runtime.cudaStreamSynchronize(NULL), cudaSuccess);
    cr_assert_eq(runs, 7);
    cr_assert_eq(runtime.cudaLibraryUnload(library), cudaSuccess);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
}

/* ---- both versions of the runtime ---- */

static int version_of(const struct stk_cuda_runtime *runtime)
{
    int version = 0;
    cr_assert_eq(runtime->cudaRuntimeGetVersion(&version), cudaSuccess);
    return version;
}

/* The other version is looked for by its name, under which it is loaded here. */
Test(cuda_cards, the_runtime_that_suits_the_driver_is_taken)
{
    int count = 0;
    standin_cuda_reset(1);
    void *const other = dlopen(STOKER_TEST_OTHER_CUDART, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(other);
    struct stk_cuda_runtime runtime = loaded();
    cr_assert_eq(version_of(&runtime), CUDART_VERSION); /* both would do: the headers' version */
    standin_cuda_driver(12040);
    runtime = loaded();
    cr_assert_eq(version_of(&runtime) / 1000, 12);
    cr_assert_eq(stk_cuda_count(&runtime, &count, why, sizeof(why)), STOKER_OK, "%s", why);
    standin_cuda_driver(11080);
    runtime = loaded();
    cr_assert_eq(version_of(&runtime), CUDART_VERSION); /* neither: its message is the better one */
    cr_assert_eq(stk_cuda_count(&runtime, &count, why, sizeof(why)), STOKER_EDEVICE);
    (void)dlclose(other);
}
