/* test_convert.c - what a GPU converts and transforms, and what crosses the bus for that; and if no
 * kernel can do it, the CPU does, or create says why not. The bits are test_determinism.c's.
 */
#include "support/gpu/cuda_bits.h"
#include "support/gpu/transform_ranges.h"
#include "support/runs/opened_loader.h"
#include "support/runs/random_hooks.h"

static stoker_error error;
static struct stk_random_hooks hooks;

static void begin(void)
{
    stk_cuda_bits_begin(2);
    stk_random_hooks_init(&hooks);
}

TestSuite(cuda_convert, .init = begin, .fini = stk_cuda_bits_finish);

static stoker_stats stats_with(const char *spec, stoker_loader_options options, int code)
{
    stoker_dataset *dataset = dataset_of(spec);
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    options.prefetch_batches = 2;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s",
                 error.message);
    if (code == STOKER_OK)
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return stats;
}

/* The launch needs the loader's device as the current one, which afterwards is the caller's
 * again. */
Test(cuda_convert, the_current_device_may_be_another)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = dataset_of("synth:bytes?count=70&shape=8x8x3");
    stoker_loader_options options =
        stk_cuda_bits_options(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3);
    options.device_index = 1;
    stoker_loader *loader = loader_of(dataset, &options);
    for (int i = 0; i < 4; i++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        int current = -1;
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
        cr_assert_eq(cudaGetDevice(&current), cudaSuccess);
        cr_assert_eq(current, 0);
    }
    stoker_loader_destroy(&loader);
    cr_assert_eq(cudaSetDevice(1), cudaSuccess); /* the consumer's stream is there, too */
    const struct stk_cuda_bits run = stk_cuda_bits_expect(dataset, options, 100, "another device");
    cr_assert_eq(run.launches, run.batches);
    cr_assert_eq(cudaSetDevice(0), cudaSuccess);
    stoker_dataset_close(&dataset);
}

/* ---- what crosses ------------------------------------------------------------------- */

/* Both slots together: at least image_bytes per image, and less than 1.5 times that. */
static void expect_sent(const char *spec, stoker_loader_options options, size_t image_bytes)
{
    options.batch_size = 13;
    const stoker_stats stats = stats_with(spec, options, STOKER_OK);
    cr_assert(stats.converts_on_device, "%s", stats.convert_reason);
    cr_assert_geq(stats.slot_bytes, 2 * 13 * image_bytes);
    cr_assert_lt(stats.slot_bytes, 3 * 13 * image_bytes);
}

Test(cuda_convert, nothing_larger_crosses_than_the_row)
{
    static const struct {
        stoker_transform transform;
        stoker_dtype dtype;
        size_t sent;
    } cases[] = {
        { { .flip = false }, STOKER_DTYPE_FLOAT32, 64 * 64 * 3 }, /* as stored */
        { { .resize = { 32, 32 }, .flip = true }, STOKER_DTYPE_FLOAT32, 64 * 64 * 3 },
        { { .resize = { 32, 32 }, .flip = true }, STOKER_DTYPE_FLOAT16, 32 * 32 * 3 },
        { { .resize = { 12, 12 }, .random_crop = { 11, 11 } }, STOKER_DTYPE_FLOAT16, 12 * 12 * 3 },
        { { .random_resized_crop = { 12, 12 }, STK_USUAL_AREA, STK_USUAL_RATIO },
          STOKER_DTYPE_FLOAT16,
          12 * 12 * 3 },
    };
    const char *spec = "synth:bytes?count=13&shape=64x64x3";
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = dataset_of(spec);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_loader_options options =
            stk_cuda_bits_options(cases[i].dtype, STOKER_LAYOUT_NCHW, 3);
        options.transform = cases[i].transform;
        options.batch_size = 5;
        expect_sent(spec, options, cases[i].sent);
        (void)stk_cuda_bits_expect(dataset, options, 0, "chosen");
        options.convert_on_device = STOKER_SWITCH_ON;
        expect_sent(spec, options, (size_t)64 * 64 * 3);
        options.convert_on_device = STOKER_SWITCH_OFF;
        cr_assert_not(stats_with(spec, options, STOKER_OK).converts_on_device);
        cr_assert_eq(stk_cuda_bits_expect(dataset, options, 0, "by the host").launches, 0U);
    }
    stoker_dataset_close(&dataset);
}

/* ---- what the GPU cannot do ---------------------------------------------------------- */

static void expect_reason(stoker_loader_options options, const char *spec, const char *reason,
                          int code)
{
    const stoker_stats stats = stats_with(spec, options, STOKER_OK);
    cr_assert_not(stats.converts_on_device);
    cr_assert(strstr(stats.convert_reason, reason) != NULL, "%s", stats.convert_reason);
    options.convert_on_device = STOKER_SWITCH_ON;
    (void)stats_with(spec, options, code);
    cr_assert(strstr(error.message, reason) != NULL, "%s", error.message);
}

Test(cuda_convert, what_no_kernel_can_do_the_cpu_does)
{
    const char *spec = "synth:bytes?count=70&shape=8x8x3";
    stoker_loader_options options =
        stk_cuda_bits_options(STOKER_DTYPE_UINT8, STOKER_LAYOUT_NHWC, 3);
    expect_reason(options, spec, "the GPU converts only uint8 rows", STOKER_ENOTSUP);
    expect_reason(stk_cuda_bits_options(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 5),
                  "synth:bytes?count=70&shape=8x8x5", "1 to 4 channels", STOKER_ENOTSUP);
    options = stk_cuda_bits_options(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3);
    options.row_hook = &hooks.row;
    expect_reason(options, spec, "hooks work on finished rows", STOKER_ENOTSUP);
    options.row_hook = NULL;
    if (!stk_cuda_kernels_built())
        return;
    options.convert_on_device = STOKER_SWITCH_OFF;
    cr_assert_str_eq(stats_with(spec, options, STOKER_OK).convert_reason, "");
    options.convert_on_device = STOKER_SWITCH_AUTO;
    standin_cuda_kernels(NULL); /* as if the image held nothing for this GPU */
    expect_reason(options, spec, "cudaLibraryGetKernel of stk_crop_f32_nhwc", STOKER_EDEVICE);
    options.transform = (stoker_transform){ .resize = { 12, 12 }, .flip = true };
    stoker_dataset *dataset = dataset_of(spec);
    cr_assert_eq(stk_cuda_bits_expect(dataset, options, 0, "no kernels").launches, 0U);
    stoker_dataset_close(&dataset);
}

/* The GPU is used all the same. */
Test(cuda_convert, what_a_gpu_without_kernels_cannot_do_the_cpu_does)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    standin_cuda_capability(5, 0);
    expect_reason(stk_cuda_bits_options(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3),
                  "synth:bytes?count=70&shape=8x8x3",
                  "Stand-in GPU 0 has compute capability 5.0; the kernels of this build are for ",
                  STOKER_EDEVICE);
}
