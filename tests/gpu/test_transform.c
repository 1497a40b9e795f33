/* test_transform.c - the transform kernels on a GPU give the bits of their source on the CPU.
 *
 * Method: the cases of transform_cases.h with 1 to 4 channels, each type and layout; images
 * gathered by id or in order, and kept by id for later batches, as are rows of other fields. Exits
 * 77 with the reason if there is no GPU, runtime or fatbin.
 */
#include <string.h>

#include "first_gpu.h"
#include "support/gpu/kernel_source.h"
#include "support/gpu/transform_cases.h"

enum { SAMPLES = 5, IMAGES = 7, BYTES_MAX = 1 << 20 };

static const uint64_t ids[SAMPLES] = { 3, 0, 6, 1, 3 };

/* For images of several sizes. */
static struct {
    uint64_t places[SAMPLES];
    struct stk_launch_source sources[SAMPLES];
} sized;

struct gpu {
    struct stk_cuda_runtime cuda;
    cudaLibrary_t library;
    void *images, *ids, *out, *scratch, *sized; /* BYTES_MAX each */
};

static void copy(struct gpu *gpu, void *to, const void *from, size_t bytes,
                 enum cudaMemcpyKind kind)
{
    CHECK(bytes <= BYTES_MAX);
    stk_gpu_copy(&gpu->cuda, to, from, bytes, kind);
}

/* Runs the kernels of a batch in order. */
static void run_on_gpu(struct gpu *gpu, struct stk_launch_steps *steps, struct stk_launch_rows rows)
{
    copy(gpu, gpu->ids, ids, sizeof(ids), cudaMemcpyHostToDevice);
    rows.ids = gpu->ids;
    rows.images = gpu->images;
    rows.out = gpu->out;
    if (rows.places != NULL) {
        copy(gpu, gpu->sized, &sized, sizeof(sized), cudaMemcpyHostToDevice);
        rows.places = gpu->sized;
        rows.sources = (unsigned char *)gpu->sized + sizeof(sized.places);
    }
    stk_launch_steps_place(steps, gpu->scratch, SAMPLES);
    stk_launch_steps_take(steps, &rows);
    for (uint32_t i = 0; i < steps->count; i++) {
        unsigned char arguments[4096];
        CHECK(steps->kernels[i]->arguments_bytes <= sizeof(arguments));
        memcpy(arguments, steps->arguments[i], steps->kernels[i]->arguments_bytes);
        stk_gpu_launch(&gpu->cuda, gpu->library, steps->kernels[i], arguments);
    }
}

static void run_on_cpu(struct stk_launch_steps *steps, const struct stk_launch_rows *rows)
{
    static _Alignas(256) unsigned char scratch[BYTES_MAX];
    CHECK(steps->scratch_bytes <= BYTES_MAX);
    stk_launch_steps_place(steps, scratch, SAMPLES);
    stk_launch_steps_take(steps, rows);
    for (uint32_t i = 0; i < steps->count; i++)
        run_kernel(steps->kernels[i], steps->arguments[i]);
}

static void check_case(struct gpu *gpu, const struct transform_case *it, uint32_t channels,
                       stoker_dtype to, stoker_layout layout, bool gather)
{
    const bool varies = transform_case_resizes(it) && gather == (channels % 2 == 1);
    static unsigned char images[BYTES_MAX], expected[BYTES_MAX], found[BYTES_MAX];
    static struct stk_launch_steps steps;
    struct stk_planned made;
    CHECK(transform_case_plan(&made, it, 5, channels, to, layout,
                              to == STOKER_DTYPE_UINT8 ? 0 : channels) == 0);
    const size_t image_bytes = (size_t)it->height * it->width * channels * IMAGES;
    const size_t row_bytes = made.convert.to_bytes * SAMPLES;
    CHECK(image_bytes <= BYTES_MAX && row_bytes <= BYTES_MAX);
    for (size_t i = 0; i < image_bytes; i++)
        images[i] = (unsigned char)(stk_mix64(i) >> 40);
    stk_launch_steps_init(&steps, &made.plan, it->height, it->width, SAMPLES);
    const struct stk_launch_rows rows = { .images = images,
                                          .gather = gather,
                                          .ids = ids,
                                          .out = expected,
                                          .count = SAMPLES,
                                          .epoch = 2,
                                          .sources = varies ? sized.sources : NULL,
                                          .places = varies ? sized.places : NULL };
    transform_case_sources(it, channels, sized.sources, sized.places, SAMPLES);
    run_on_cpu(&steps, &rows);
    copy(gpu, gpu->images, images, image_bytes, cudaMemcpyHostToDevice);
    run_on_gpu(gpu, &steps, rows);
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
    run_kernel(stk_kernel_named("stk_keep"), &launch);

    copy(gpu, gpu->images, images, kept_bytes, cudaMemcpyHostToDevice);
    copy(gpu, gpu->ids, ids, sizeof(ids), cudaMemcpyHostToDevice);
    copy(gpu, gpu->scratch, fresh, sizeof(fresh), cudaMemcpyHostToDevice);
    launch.batch.ids = gpu->ids;
    launch.batch.images = gpu->images;
    launch.fresh = gpu->scratch;
    launch.kept = gpu->out;
    stk_gpu_launch(&gpu->cuda, gpu->library, stk_kernel_named("stk_keep"), &launch);
    copy(gpu, found, gpu->out, kept_bytes, cudaMemcpyDeviceToHost);
    if (memcmp(found, expected, kept_bytes) != 0) {
        fprintf(stderr, "%s: %u channels: stk_keep differs\n", it->name, channels);
        exit(1);
    }
}

/* Fresh rows of fields of several lengths are kept at their ids, and the others are taken from
 * there. */
static void check_rows(struct gpu *gpu)
{
    static const uint64_t lengths[] = { 7, 8, 2049, 66000 };
    enum { FIELDS = sizeof(lengths) / sizeof(lengths[0]), ALIGN = 256 };
    static const uint8_t fresh[SAMPLES] = { 1, 0, 1, 0, 1 };
    static _Alignas(ALIGN) unsigned char rows[BYTES_MAX], kept[BYTES_MAX], found[BYTES_MAX];
    struct stk_rows_launch launch = { .batch = { .ids = ids, .count = SAMPLES },
                                      .fresh = fresh,
                                      .field_count = FIELDS };
    size_t rows_bytes = 0, kept_bytes = 0;
    for (size_t i = 0; i < BYTES_MAX; i++) {
        rows[i] = (unsigned char)(stk_mix64(i) >> 32);
        kept[i] = (unsigned char)(stk_mix64(i) >> 40);
    }
    size_t rows_at[FIELDS], kept_at[FIELDS];
    for (int f = 0; f < FIELDS; f++) {
        rows_at[f] = rows_bytes;
        kept_at[f] = kept_bytes;
        launch.fields[f] =
            (struct stk_rows_field){ rows + rows_bytes, kept + kept_bytes, lengths[f] };
        /* Samples 0 and 4 are the same one. */
        memcpy(rows + rows_bytes + 4 * lengths[f], rows + rows_bytes, lengths[f]);
        rows_bytes += (SAMPLES * lengths[f] + ALIGN - 1) / ALIGN * ALIGN;
        kept_bytes += (IMAGES * lengths[f] + ALIGN - 1) / ALIGN * ALIGN;
    }
    copy(gpu, gpu->images, rows, rows_bytes, cudaMemcpyHostToDevice);
    copy(gpu, gpu->out, kept, kept_bytes, cudaMemcpyHostToDevice);
    copy(gpu, gpu->ids, ids, sizeof(ids), cudaMemcpyHostToDevice);
    copy(gpu, gpu->scratch, fresh, sizeof(fresh), cudaMemcpyHostToDevice);
    run_kernel(stk_kernel_named("stk_rows"), &launch);
    launch.batch.ids = gpu->ids;
    launch.fresh = gpu->scratch;
    for (int f = 0; f < FIELDS; f++) {
        launch.fields[f].rows = (uint8_t *)gpu->images + rows_at[f];
        launch.fields[f].kept = (uint8_t *)gpu->out + kept_at[f];
    }
    stk_gpu_launch(&gpu->cuda, gpu->library, stk_kernel_named("stk_rows"), &launch);
    copy(gpu, found, gpu->images, rows_bytes, cudaMemcpyDeviceToHost);
    CHECK(memcmp(found, rows, rows_bytes) == 0);
    copy(gpu, found, gpu->out, kept_bytes, cudaMemcpyDeviceToHost);
    CHECK(memcmp(found, kept, kept_bytes) == 0);
}

static void take_memory(struct gpu *gpu)
{
    void **const all[] = { &gpu->images, &gpu->ids, &gpu->out, &gpu->scratch, &gpu->sized };
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
    check_rows(&gpu);
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
    printf("%d cases, 4 types, 2 layouts, 1 to 4 channels: the bits of their source on the CPU\n",
           (int)TRANSFORM_CASES);
    return 0;
}
