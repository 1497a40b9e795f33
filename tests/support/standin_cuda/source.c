/* source.c - launches run the kernels' own source, if a module of it is named by STOKER_TEST_KERNEL_SOURCE.
 *
 * The module brings the runtime that runs it (libcuda_threads), so the stand-in links neither. A kernel may touch device memory
 * only, each allocation up to its end.
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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct cuda_threads_module *module; /* NULL = none is named */
static run_fn *run;

static void open_module(void)
{
    const char *path = getenv("STOKER_TEST_KERNEL_SOURCE");
    if (path == NULL)
        return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found = library == NULL ? NULL : dlsym(library, "cuda_threads_run");
    if (found == NULL) {
        fprintf(stderr, "STOKER_TEST_KERNEL_SOURCE: %s\n", dlerror());
        abort();
    }
    memcpy(&run, &found, sizeof(run));
    module = dlsym(library, "cuda_threads_module");
}

static bool has(const char *kernel)
{
    const struct cuda_threads_kernel *k = module->kernels;
    while (k->name != NULL && strcmp(k->name, kernel) != 0)
        k++;
    return k->name != NULL;
}

static bool find(const void *address, struct cuda_threads_memory *out)
{
    *out = (struct cuda_threads_memory){ .name = "device memory", .writable = true };
    return standin_view_range(address, &out->at, &out->bytes);
}

/* Replaces each word that is an address in device memory by the accessible address of the same byte. */
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

bool standin_source_run(const struct standin_operation *operation)
{
    enum { INTERRUPT_EVERY = 256 };
    static _Atomic uint64_t seeds;
    const struct standin_cuda_kernel *kernel = operation->kernel;
    (void)pthread_once(&once, open_module);
    if (module == NULL || !has(kernel->name))
        return false;
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
                                                .find = find,
                                                .seed = 1 + atomic_fetch_add(&seeds, 1U),
                                                .interrupt_every = INTERRUPT_EVERY,
                                                .equal_writes = keeps(kernel->name) };
    if (run(module, &launch, report) > 0)
        end_with(report);
    free(argument);
    free(report);
    return true;
}
