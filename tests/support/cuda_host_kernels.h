/* cuda_host_kernels.h - host versions of the transform kernels, which the stand-in runs. */
#ifndef STK_TEST_CUDA_HOST_KERNELS_H
#define STK_TEST_CUDA_HOST_KERNELS_H

#include <string.h>

#include "kernels/transform/launch.h"
#include "support/standin_cuda/standin_cuda.h"

/* Without nvcc the library has no kernels and loads none. */
static inline bool stk_cuda_kernels_built(void)
{
    size_t bytes;
    return stk_kernels_fatbin(&bytes) != NULL;
}

/* Returns the accessible address of a device pointer; NULL stays NULL. */
static inline void stk_cuda_view_at(void *pointer)
{
    void *at;
    memcpy(&at, pointer, sizeof(at));
    if (at != NULL)
        at = standin_cuda_view(at);
    memcpy(pointer, &at, sizeof(at));
}

static inline bool stk_cuda_retouches(const char *name)
{
    static const char *const names[] = { "stk_retouch", "stk_rotate",     "stk_gray",
                                         "stk_colour",  "stk_blur_along", "stk_blur_across" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Replaces the struct's device pointers by accessible ones and runs the host version. */
static inline void stk_cuda_run_host_kernel(const struct standin_cuda_kernel *kernel,
                                            void *argument)
{
    if (strstr(kernel->name, "mix") != NULL) { /* both structs begin with the rows */
        stk_cuda_view_at(argument);
        stk_kernel_named(kernel->name)->run_on_host(argument);
        return;
    }
    struct stk_launch_batch *batch = argument; /* every other struct begins with it */
    stk_cuda_view_at(&batch->ids);
    stk_cuda_view_at(&batch->images);
    stk_cuda_view_at(&batch->rectangles);
    stk_cuda_view_at(&batch->taps);
    stk_cuda_view_at(&batch->resized);
    if (strncmp(kernel->name, "stk_crop_", strlen("stk_crop_")) == 0)
        stk_cuda_view_at(&((struct stk_crop_launch *)argument)->out);
    if (strcmp(kernel->name, "stk_keep") == 0) {
        struct stk_keep_launch *keep = argument;
        stk_cuda_view_at(&keep->fresh);
        stk_cuda_view_at(&keep->kept);
    }
    if (strcmp(kernel->name, "stk_rows") == 0) {
        struct stk_rows_launch *rows = argument;
        stk_cuda_view_at(&rows->fresh);
        for (uint32_t i = 0; i < rows->field_count; i++) {
            stk_cuda_view_at(&rows->fields[i].rows);
            stk_cuda_view_at(&rows->fields[i].kept);
        }
    }
    if (stk_cuda_retouches(kernel->name)) {
        struct stk_retouch_launch *retouch = argument;
        stk_cuda_view_at(&retouch->drawn);
        stk_cuda_view_at(&retouch->means);
        stk_cuda_view_at(&retouch->cropped);
        stk_cuda_view_at(&retouch->turned);
        stk_cuda_view_at(&retouch->lines);
    }
    stk_kernel_named(kernel->name)->run_on_host(argument);
}

/* All kernels of the library. */
static inline void stk_cuda_use_host_kernels(void)
{
    enum { KERNELS_MAX = 32 };
    static struct standin_cuda_kernel kernels[KERNELS_MAX + 1];
    for (int i = 0; stk_kernels[i].name != NULL && i < KERNELS_MAX; i++)
        kernels[i] =
            (struct standin_cuda_kernel){ stk_kernels[i].name, stk_kernels[i].arguments_bytes,
                                          stk_cuda_run_host_kernel };
    standin_cuda_kernels(kernels);
}

#endif
