/* source.c - launches run the kernels' own source, from a module of it.
 *
 * The module brings the runtime that runs it (libcuda_threads), so the stand-in links neither. A
 * kernel may touch device memory only, each allocation up to its end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "support/cuda_threads/cuda_threads.h"

typedef uint32_t run_fn(const struct cuda_threads_module *, const struct cuda_threads_launch *,
                        struct cuda_threads_report *);

enum { KERNELS_MAX = 160 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct cuda_threads_module *module;
static run_fn *run;
static bool watched;
static struct standin_cuda_kernel kernels[KERNELS_MAX + 1];

static void open_module(void)
{
    const char *path = getenv("STOKER_TEST_KERNEL_SOURCE");
    watched = path != NULL;
    path = watched ? path : STANDIN_KERNELS;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found = library == NULL ? NULL : dlsym(library, "cuda_threads_run");
    if (found == NULL) {
        fprintf(stderr, "the kernels of the stand-in: %s\n", dlerror());
        abort();
    }
    memcpy(&run, &found, sizeof(run));
    module = dlsym(library, "cuda_threads_module");
    for (size_t i = 0; i < KERNELS_MAX && module->kernels[i].name != NULL; i++)
        kernels[i] = (struct standin_cuda_kernel){ module->kernels[i].name,
                                                   module->kernels[i].arguments_bytes, NULL };
}

void standin_cuda_use_kernels(void)
{
    (void)pthread_once(&once, open_module);
    standin_cuda_kernels(kernels);
}

void standin_cuda_add_kernel(const struct standin_cuda_kernel *kernel)
{
    size_t count = 0;
    while (kernels[count].name != NULL)
        count++;
    if (count == KERNELS_MAX)
        abort();
    kernels[count] = *kernel;
}

static bool find(const void *address, struct cuda_threads_memory *out)
{
    *out = (struct cuda_threads_memory){ .name = "device memory", .writable = true };
    return standin_view_range(address, &out->at, &out->bytes);
}

/* Replaces each word that is an address in device memory by the accessible address of the same
 * byte. */
static void use_views(unsigned char *argument, size_t bytes)
{
    for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
        void *word;
        memcpy(&word, argument + at, sizeof(word));
        void *const view = standin_cuda_view(word);
        if (view != NULL)
            memcpy(argument + at, &view, sizeof(view));
    }
}

/* A batch may hold a sample twice: both its blocks then keep the same bytes at the same place. */
static bool keeps(const char *kernel)
{
    return strcmp(kernel, "stk_keep") == 0 || strcmp(kernel, "stk_rows") == 0;
}

static void end_with(const struct cuda_threads_report *report)
{
    for (uint32_t i = 0; i < report->count && i < CUDA_THREADS_FINDINGS_MAX; i++)
        fprintf(stderr, "%s\n", report->findings[i].text);
    abort();
}

_Thread_local const struct standin_operation *standin_launch;

void standin_cuda_run_source(void)
{
    standin_source_run(standin_launch);
}

void standin_source_run(const struct standin_operation *operation)
{
    enum { INTERRUPT_EVERY = 256 };
    static _Atomic uint64_t seeds;
    const struct standin_cuda_kernel *kernel = operation->kernel;
    (void)pthread_once(&once, open_module);
    unsigned char *argument = malloc(kernel->argument_bytes);
    struct cuda_threads_report *report = malloc(sizeof(*report));
    if (argument == NULL || report == NULL)
        abort();
    memcpy(argument, operation->argument, kernel->argument_bytes);
    use_views(argument, kernel->argument_bytes);
    const struct cuda_threads_launch launch = { .kernel = kernel->name,
                                                .arguments = argument,
                                                .arguments_bytes = kernel->argument_bytes,
                                                .grid_x = operation->grid_x,
                                                .grid_y = operation->grid_y,
                                                .threads = operation->threads,
                                                .find = watched ? find : NULL,
                                                .seed =
                                                    watched ? 1 + atomic_fetch_add(&seeds, 1U) : 0,
                                                .interrupt_every = watched ? INTERRUPT_EVERY : 0,
                                                .equal_writes = keeps(kernel->name) };
    if (run(module, &launch, report) > 0)
        end_with(report);
    free(argument);
    free(report);
}
