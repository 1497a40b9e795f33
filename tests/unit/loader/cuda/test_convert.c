/* test_convert.c - rows that a kernel converts behind their copy have the bits that the CPU gives
 * them; and if no kernel can do it, the CPU does, or create says why not.
 */
#include "support/cuda_bits.h"
#include "support/opened_loader.h"

static stoker_error error;
static void begin(void)
{
    stk_cuda_bits_begin(2);
}

TestSuite(cuda_convert, .init = begin, .fini = stk_cuda_bits_finish);

static stoker_loader_options options_for(stoker_dtype dtype, stoker_layout layout,
                                         uint32_t channels)
{
    return stk_cuda_bits_options(dtype, layout, channels);
}

static stoker_stats stats_with(const stoker_dataset *dataset, stoker_loader_options options,
                               int code)
{
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s",
                 error.message);
    if (code == STOKER_OK)
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    return stats;
}

/* By one kernel a batch. */
static void expect_bits(const stoker_dataset *dataset, stoker_loader_options options)
{
    const struct stk_cuda_bits run = stk_cuda_bits_expect(dataset, options, 100, "converted");
    cr_assert_eq(run.launches, run.batches);
}

Test(cuda_convert, bits_are_those_of_the_cpu)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    for (uint32_t channels = 1; channels <= 4; channels++) {
        char spec[80];
        (void)snprintf(spec, sizeof(spec), "synth:bytes?count=70&shape=5x7x%u", channels);
        stoker_dataset *dataset = dataset_of(spec);
        for (int i = 0; i < 6; i++) {
            stoker_loader_options options =
                options_for(types[i / 2], (stoker_layout)(i % 2), channels);
            options.num_workers = i % 3;
            options.convert_on_device = i % 2 == 0 ? STOKER_SWITCH_AUTO : STOKER_SWITCH_ON;
            options.device_index = (uint32_t)i % 2;
            cr_assert_eq(cudaSetDevice(i % 2),
                         cudaSuccess); /* the consumer's stream is there, too */
            expect_bits(dataset, options);
        }
        cr_assert_eq(cudaSetDevice(0), cudaSuccess);
        if (channels > 1)
            expect_bits(dataset, options_for(STOKER_DTYPE_UINT8, STOKER_LAYOUT_NCHW, channels));
        stoker_dataset_close(&dataset);
    }
}

Test(cuda_convert, rows_that_are_no_images)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = dataset_of("synth:bytes?count=70&shape=123");
    expect_bits(dataset, options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 1));
    stoker_dataset_close(&dataset);
    dataset = dataset_of("synth:bytes?count=70&shape=8x8x5"); /* all columns alike: one line */
    expect_bits(dataset, options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 0));
    stoker_dataset_close(&dataset);
}

Test(cuda_convert, only_stored_bytes_are_copied)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=70&shape=8x8x3");
    stoker_loader_options options = options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3);
    options.prefetch_batches = 2;
    options.convert_on_device = STOKER_SWITCH_OFF;
    const stoker_stats host = stats_with(dataset, options, STOKER_OK);
    cr_assert_not(host.converts_on_device);
    cr_assert_str_eq(host.convert_reason, "");
    options.convert_on_device = STOKER_SWITCH_AUTO;
    const stoker_stats device = stats_with(dataset, options, STOKER_OK);
    cr_assert_eq(device.converts_on_device, stk_cuda_kernels_built());
    if (stk_cuda_kernels_built())
        cr_assert_lt(device.slot_bytes * 2, host.slot_bytes * 1);
    stoker_dataset_close(&dataset);
}

/* The launch needs the loader's device as the current one, which afterwards is the caller's
 * again. */
Test(cuda_convert, the_current_device_may_be_another)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = dataset_of("synth:bytes?count=70&shape=8x8x3");
    stoker_loader_options options = options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3);
    stoker_loader *loader = NULL;
    options.device_index = 1;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    for (int i = 0; i < 4; i++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        int current = -1;
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
        cr_assert_eq(cudaGetDevice(&current), cudaSuccess);
        cr_assert_eq(current, 0);
    }
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

static void expect_reason(stoker_loader_options options, const char *spec, const char *reason,
                          int code)
{
    stoker_dataset *dataset = dataset_of(spec);
    const stoker_stats stats = stats_with(dataset, options, STOKER_OK);
    cr_assert_not(stats.converts_on_device);
    cr_assert(strstr(stats.convert_reason, reason) != NULL, "%s", stats.convert_reason);
    options.convert_on_device = STOKER_SWITCH_ON;
    (void)stats_with(dataset, options, code);
    cr_assert(strstr(error.message, reason) != NULL, "%s", error.message);
    stoker_dataset_close(&dataset);
}

Test(cuda_convert, what_no_kernel_can_do_the_cpu_does)
{
    expect_reason(options_for(STOKER_DTYPE_UINT8, STOKER_LAYOUT_NHWC, 3),
                  "synth:bytes?count=70&shape=8x8x3", "the GPU converts only uint8 rows",
                  STOKER_ENOTSUP); /* nothing to do */
    expect_reason(options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 5),
                  "synth:bytes?count=70&shape=8x8x5", "1 to 4 channels", STOKER_ENOTSUP);
    standin_cuda_kernels(NULL); /* as if the image held nothing for this GPU */
    if (stk_cuda_kernels_built())
        expect_reason(options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3),
                      "synth:bytes?count=70&shape=8x8x3",
                      "cudaLibraryGetKernel of stk_crop_f32_nhwc", STOKER_EDEVICE);
}

/* The GPU is used all the same. */
Test(cuda_convert, what_a_gpu_without_kernels_cannot_do_the_cpu_does)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    const stoker_loader_options options = options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 3);
    standin_cuda_capability(5, 0);
    expect_reason(options, "synth:bytes?count=70&shape=8x8x3",
                  "Stand-in GPU 0 has compute capability 5.0; the kernels of this build are for ",
                  STOKER_EDEVICE);
}

Test(cuda_convert, an_incomplete_batch)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = dataset_of("synth:bytes?count=37&shape=4x4x1");
    stoker_loader_options options = options_for(STOKER_DTYPE_FLOAT16, STOKER_LAYOUT_NHWC, 1);
    options.batch_size = 10; /* the last one has 7 */
    expect_bits(dataset, options);
    stoker_dataset_close(&dataset);
}
