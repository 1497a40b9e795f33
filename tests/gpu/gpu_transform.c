/* gpu_transform.c - the kernels on a GPU give the bits of their twins, case by case.
 *
 * The list of transform_cases.h with 1 to 4 channels, each type and layout; images gathered by id or in
 * order, and kept by id for later batches. Exit 77 where there is no GPU, no runtime or no fatbin, and it says which.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/launch.h"
#include "loader/device/cuda_runtime.h"
#include "thread_check.h"
#include "transform_cases.h"

enum { SAMPLES = 5, IMAGES = 7, SKIP = 77, BYTES_MAX = 1 << 20 };

static const uint64_t ids[SAMPLES] = { 3, 0, 6, 1, 3 };
static const float means[] = { 0.485F, 0.456F, 0.406F, 0.25F };
static const float stds[] = { 0.229F, 0.224F, 0.225F, 0.5F };

struct gpu {
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    void *images, *ids, *out, *taps, *resized; /* BYTES_MAX each */
};

struct made {
    struct stk_convert_plan convert;
    struct stk_transform_plan plan;
};

static void make(struct made *made, const struct transform_case *it, uint32_t channels,
                 stoker_dtype to, stoker_layout layout)
{
    char why[STK_TRANSFORM_WHY_BYTES] = "";
    struct stk_framing framing;
    CHECK(stk_framing_init(&framing, &it->transform, 5, it->height, it->width, false, why) == 0);
    const struct stk_convert_options convert = {
        .from = STOKER_UINT8,
        .to = to,
        .layout = layout,
        .elements = (size_t)framing.out_height * framing.out_width * channels,
        .channels = channels,
        .scale = 1.0F / 255.0F,
        .mean = to == STOKER_UINT8 ? NULL : means,
        .std = to == STOKER_UINT8 ? NULL : stds,
        .mean_count = to == STOKER_UINT8 ? 0 : channels,
    };
    CHECK(stk_convert_plan_init(&made->convert, &convert) == 0);
    CHECK(stk_transform_plan_init(&made->plan, &framing, it->transform.fill, &made->convert,
                                  channels, it->height, it->width) == 0);
}

static void copy(struct gpu *gpu, void *to, const void *from, size_t bytes,
                 enum cudaMemcpyKind kind)
{
    CHECK(bytes <= BYTES_MAX);
    CHECK(gpu->cuda.cudaMemcpyAsync(to, from, bytes, kind, NULL) == cudaSuccess);
    CHECK(gpu->cuda.cudaStreamSynchronize(NULL) == cudaSuccess);
}

static void launch_kernel(struct gpu *gpu, const struct stk_kernel *kernel, void *arguments)
{
    cudaKernel_t found;
    void *list[] = { arguments };
    const struct stk_launch_grid grid = kernel->grid(arguments);
    CHECK(gpu->cuda.cudaLibraryGetKernel(&found, gpu->library, kernel->name) == cudaSuccess);
    CHECK(gpu->cuda.cudaLaunchKernel((const void *)found, (dim3){ grid.x, grid.y, 1 },
                                     (dim3){ STK_LAUNCH_THREADS, 1, 1 }, list, 0,
                                     NULL) == cudaSuccess);
}

/* The kernels that a launch takes, by `run`. */
static void run_on_gpu(struct gpu *gpu, const struct made *made, struct stk_crop_launch launch)
{
    copy(gpu, gpu->ids, ids, sizeof(ids), cudaMemcpyHostToDevice);
    launch.batch.ids = gpu->ids;
    launch.batch.images = gpu->images;
    launch.out = gpu->out;
    if (stk_launch_resizes(&launch.batch)) {
        launch.batch.taps = gpu->taps;
        launch.batch.resized = gpu->resized;
        struct stk_taps_launch taps = { launch.batch };
        struct stk_resize_launch resize = { launch.batch };
        launch_kernel(gpu, stk_kernel_named("stk_taps"), &taps);
        launch_kernel(gpu, stk_kernel_named("stk_resize"), &resize);
    }
    launch_kernel(gpu, stk_kernel_crop(&made->plan), &launch);
    CHECK(gpu->cuda.cudaStreamSynchronize(NULL) == cudaSuccess);
}

static void run_twins(const struct made *made, struct stk_crop_launch launch, void *out)
{
    size_t taps_bytes, resized_bytes;
    stk_launch_scratch_bytes(&launch.batch, SAMPLES, &taps_bytes, &resized_bytes);
    CHECK(taps_bytes <= BYTES_MAX && resized_bytes <= BYTES_MAX);
    launch.out = out;
    if (stk_launch_resizes(&launch.batch)) {
        launch.batch.taps = malloc(taps_bytes);
        launch.batch.resized = malloc(resized_bytes);
        CHECK(launch.batch.taps != NULL && launch.batch.resized != NULL);
        stk_kernel_named("stk_taps")->twin(&launch);
        stk_kernel_named("stk_resize")->twin(&launch);
    }
    stk_kernel_crop(&made->plan)->twin(&launch);
    free(launch.batch.taps);
    free(launch.batch.resized);
}

static void check_case(struct gpu *gpu, const struct transform_case *it, uint32_t channels,
                       stoker_dtype to, stoker_layout layout, bool gather)
{
    static unsigned char images[BYTES_MAX], expected[BYTES_MAX], found[BYTES_MAX];
    struct made made;
    struct stk_crop_launch launch;
    make(&made, it, channels, to, layout);
    const size_t image_bytes = (size_t)it->height * it->width * channels * IMAGES;
    const size_t row_bytes = made.convert.to_bytes * SAMPLES;
    CHECK(image_bytes <= BYTES_MAX && row_bytes <= BYTES_MAX);
    for (size_t i = 0; i < image_bytes; i++)
        images[i] = (unsigned char)(stk_mix64(i) >> 40);
    stk_launch_of(&launch, &made.plan, it->height, it->width);
    launch.batch.epoch = 2;
    launch.batch.ids = ids;
    launch.batch.images = images;
    launch.batch.count = SAMPLES;
    launch.batch.gather = gather;
    run_twins(&made, launch, expected);
    copy(gpu, gpu->images, images, image_bytes, cudaMemcpyHostToDevice);
    run_on_gpu(gpu, &made, launch);
    copy(gpu, found, gpu->out, row_bytes, cudaMemcpyDeviceToHost);
    if (memcmp(found, expected, row_bytes) != 0) {
        fprintf(stderr, "%s: %u channels, type %d, layout %d differ\n", it->name, channels, (int)to,
                (int)layout);
        exit(1);
    }
}

/* Rows of a batch that are fresh go to the places of their ids; nothing else is written. */
static void check_keep(struct gpu *gpu, const struct transform_case *it, uint32_t channels)
{
    static const uint8_t fresh[SAMPLES] = { 1, 0, 1, 1, 0 };
    static unsigned char images[BYTES_MAX], expected[BYTES_MAX], found[BYTES_MAX];
    struct made made;
    struct stk_crop_launch crop;
    make(&made, it, channels, STOKER_UINT8, STOKER_NHWC);
    stk_launch_of(&crop, &made.plan, it->height, it->width);
    struct stk_keep_launch launch = { .batch = crop.batch, .fresh = fresh, .kept = expected };
    const size_t kept_bytes = (size_t)it->height * it->width * channels * IMAGES;
    launch.batch.ids = ids;
    launch.batch.images = images;
    launch.batch.count = SAMPLES;
    for (size_t i = 0; i < kept_bytes; i++)
        images[i] = (unsigned char)(stk_mix64(i) >> 32);
    memset(expected, 0xA5, kept_bytes);
    copy(gpu, gpu->out, expected, kept_bytes, cudaMemcpyHostToDevice);
    stk_kernel_named("stk_keep")->twin(&launch);

    copy(gpu, gpu->images, images, kept_bytes, cudaMemcpyHostToDevice);
    copy(gpu, gpu->ids, ids, sizeof(ids), cudaMemcpyHostToDevice);
    copy(gpu, gpu->taps, fresh, sizeof(fresh), cudaMemcpyHostToDevice);
    launch.batch.ids = gpu->ids;
    launch.batch.images = gpu->images;
    launch.fresh = gpu->taps;
    launch.kept = gpu->out;
    launch_kernel(gpu, stk_kernel_named("stk_keep"), &launch);
    CHECK(gpu->cuda.cudaStreamSynchronize(NULL) == cudaSuccess);
    copy(gpu, found, gpu->out, kept_bytes, cudaMemcpyDeviceToHost);
    if (memcmp(found, expected, kept_bytes) != 0) {
        fprintf(stderr, "%s: %u channels: stk_keep differs\n", it->name, channels);
        exit(1);
    }
}

static int skip(const char *why)
{
    printf("SKIPPED: %s\n", why);
    return SKIP;
}

static void take_memory(struct gpu *gpu)
{
    void **const all[] = { &gpu->images, &gpu->ids, &gpu->out, &gpu->taps, &gpu->resized };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        CHECK(gpu->cuda.cudaMalloc(all[i], BYTES_MAX) == cudaSuccess);
}

int main(void)
{
    static const stoker_dtype types[] = { STOKER_FLOAT32, STOKER_FLOAT16, STOKER_BFLOAT16,
                                          STOKER_UINT8 };
    static struct gpu gpu;
    char why[STK_DEVICE_WHY_BYTES];
    size_t bytes;
    int count = 0;
    const void *fatbin = stk_kernels_fatbin(&bytes);
    if (fatbin == NULL)
        return skip("built without nvcc");
    if (stk_cuda_runtime_load(&gpu.cuda, why) != 0)
        return skip(why);
    if (gpu.cuda.cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return skip("no GPU");
    CHECK(gpu.cuda.cudaLibraryLoadData(&gpu.library, fatbin, NULL, NULL, 0, NULL, NULL, 0) ==
          cudaSuccess);
    take_memory(&gpu);
    for (size_t i = 0; i < TRANSFORM_CASES; i++)
        for (uint32_t channels = 1; channels <= 4; channels++) {
            for (size_t type = 0; type < 4; type++) {
                check_case(&gpu, &transform_cases[i], channels, types[type], STOKER_NHWC, true);
                check_case(&gpu, &transform_cases[i], channels, types[type], STOKER_NCHW, false);
            }
            check_keep(&gpu, &transform_cases[i], channels);
        }
    printf("%d cases, 4 types, 2 layouts, 1 to 4 channels: the bits of the twins\n",
           (int)TRANSFORM_CASES);
    return 0;
}
