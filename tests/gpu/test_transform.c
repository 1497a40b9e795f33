/* test_transform.c - the transform kernels on a GPU give the bits of their host versions.
 *
 * Method: the cases of transform_cases.h with 1 to 4 channels, each type and layout; images gathered by id or in
 * order, and kept by id for later batches. Exits 77 with the reason if there is no GPU, runtime or fatbin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "first_gpu.h"
#include "support/transform_cases.h"

enum { SAMPLES = 5, IMAGES = 7, BYTES_MAX = 1 << 20 };

static const uint64_t ids[SAMPLES] = { 3, 0, 6, 1, 3 };

struct gpu {
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    void *images, *ids, *out, *taps, *resized; /* BYTES_MAX each */
};

static void copy(struct gpu *gpu, void *to, const void *from, size_t bytes,
                 enum cudaMemcpyKind kind)
{
    CHECK(bytes <= BYTES_MAX);
    stk_gpu_copy(&gpu->cuda, to, from, bytes, kind);
}

/* Runs the kernels of a launch in order. */
static void run_on_gpu(struct gpu *gpu, const struct stk_planned *made,
                       struct stk_crop_launch launch)
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
        stk_gpu_launch(&gpu->cuda, gpu->library, stk_kernel_named("stk_taps"), &taps);
        stk_gpu_launch(&gpu->cuda, gpu->library, stk_kernel_named("stk_resize"), &resize);
    }
    stk_gpu_launch(&gpu->cuda, gpu->library, stk_kernel_crop(&made->plan), &launch);
}

static void run_on_host(const struct stk_planned *made, struct stk_crop_launch launch, void *out)
{
    size_t taps_bytes, resized_bytes;
    stk_launch_scratch_bytes(&launch.batch, SAMPLES, &taps_bytes, &resized_bytes);
    CHECK(taps_bytes <= BYTES_MAX && resized_bytes <= BYTES_MAX);
    launch.out = out;
    if (stk_launch_resizes(&launch.batch)) {
        launch.batch.taps = malloc(taps_bytes);
        launch.batch.resized = malloc(resized_bytes);
        CHECK(launch.batch.taps != NULL && launch.batch.resized != NULL);
        stk_kernel_named("stk_taps")->run_on_host(&launch);
        stk_kernel_named("stk_resize")->run_on_host(&launch);
    }
    stk_kernel_crop(&made->plan)->run_on_host(&launch);
    free(launch.batch.taps);
    free(launch.batch.resized);
}

static void check_case(struct gpu *gpu, const struct transform_case *it, uint32_t channels,
                       stoker_dtype to, stoker_layout layout, bool gather)
{
    static unsigned char images[BYTES_MAX], expected[BYTES_MAX], found[BYTES_MAX];
    struct stk_planned made;
    struct stk_crop_launch launch;
    CHECK(transform_case_plan(&made, it, 5, channels, to, layout,
                              to == STOKER_DTYPE_UINT8 ? 0 : channels) == 0);
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
    run_on_host(&made, launch, expected);
    copy(gpu, gpu->images, images, image_bytes, cudaMemcpyHostToDevice);
    run_on_gpu(gpu, &made, launch);
    copy(gpu, found, gpu->out, row_bytes, cudaMemcpyDeviceToHost);
    if (memcmp(found, expected, row_bytes) != 0) {
        fprintf(stderr, "%s: %u channels, type %d, layout %d differ\n", it->name, channels, (int)to,
                (int)layout);
        exit(1);
    }
}

/* Fresh rows of a batch are written at their ids; nothing else is. */
static void check_keep(struct gpu *gpu, const struct transform_case *it, uint32_t channels)
{
    static const uint8_t fresh[SAMPLES] = { 1, 0, 1, 1, 0 };
    static unsigned char images[BYTES_MAX], expected[BYTES_MAX], found[BYTES_MAX];
    struct stk_planned made;
    struct stk_crop_launch crop;
    CHECK(transform_case_plan(&made, it, 5, channels, STOKER_DTYPE_UINT8, STOKER_LAYOUT_NHWC, 0) ==
          0);
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
    stk_kernel_named("stk_keep")->run_on_host(&launch);

    copy(gpu, gpu->images, images, kept_bytes, cudaMemcpyHostToDevice);
    copy(gpu, gpu->ids, ids, sizeof(ids), cudaMemcpyHostToDevice);
    copy(gpu, gpu->taps, fresh, sizeof(fresh), cudaMemcpyHostToDevice);
    launch.batch.ids = gpu->ids;
    launch.batch.images = gpu->images;
    launch.fresh = gpu->taps;
    launch.kept = gpu->out;
    stk_gpu_launch(&gpu->cuda, gpu->library, stk_kernel_named("stk_keep"), &launch);
    copy(gpu, found, gpu->out, kept_bytes, cudaMemcpyDeviceToHost);
    if (memcmp(found, expected, kept_bytes) != 0) {
        fprintf(stderr, "%s: %u channels: stk_keep differs\n", it->name, channels);
        exit(1);
    }
}

static void take_memory(struct gpu *gpu)
{
    void **const all[] = { &gpu->images, &gpu->ids, &gpu->out, &gpu->taps, &gpu->resized };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        CHECK(gpu->cuda.cudaMalloc(all[i], BYTES_MAX) == cudaSuccess);
}

int main(void)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16, STOKER_DTYPE_UINT8 };
    static struct gpu gpu;
    size_t bytes;
    const char *const missing =
        stk_gpu_kernels_missing(&gpu.cuda, stk_kernels_fatbin(&bytes), &gpu.library);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    take_memory(&gpu);
    for (size_t i = 0; i < TRANSFORM_CASES; i++)
        for (uint32_t channels = 1; channels <= 4; channels++) {
            for (size_t type = 0; type < 4; type++) {
                check_case(&gpu, &transform_cases[i], channels, types[type], STOKER_LAYOUT_NHWC,
                           true);
                check_case(&gpu, &transform_cases[i], channels, types[type], STOKER_LAYOUT_NCHW,
                           false);
            }
            check_keep(&gpu, &transform_cases[i], channels);
        }
    printf("%d cases, 4 types, 2 layouts, 1 to 4 channels: the bits of the host kernels\n",
           (int)TRANSFORM_CASES);
    return 0;
}
