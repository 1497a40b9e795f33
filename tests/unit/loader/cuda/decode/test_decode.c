/* test_decode.c - images that a GPU decodes: the bytes of the CPU, by every way and policy; and
 * where the GPU cannot, a reason.
 *
 * The stand-in for nvImageCodec decodes as the CPU does, so whatever lies between the files and the
 * batch shows.
 */
#include "loader/base/fault.h"
#include "support/files/jpeg_set.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/standin_nvimgcodec/standin_nvimgcodec.h"

static struct stk_jpeg_set set;
static struct stk_run expected, found;
static const struct stk_jpeg_set_kind mixed = { .gray = false };
static const struct stk_jpeg_set_kind one_size = { .size = { 24, 32 } };
static const struct stk_jpeg_set_kind bad = { .bad = true };

static void begin(void)
{
    standin_cuda_reset(2);
    standin_cuda_delay(30);
    standin_nvimgcodec_reset();
    standin_cuda_use_kernels();
}

static void end(void)
{
    cr_assert_eq(standin_nvimgcodec_live(), 0);
    cr_assert_eq(standin_nvimgcodec_violations(), 0);
    cr_assert_eq(standin_cuda_violations(), 0);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(decode, .init = begin, .fini = end);

static void open_set(const struct stk_jpeg_set_kind *kind, const char *parameters)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    cr_assert(stk_jpeg_set_make(&set, kind, parameters));
}

static stoker_loader_options options_for(int32_t workers)
{
    return stk_small_options(.device = STOKER_DEVICE_CUDA, .decode = STOKER_DECODE_DEVICE,
                             .batch_size = 7, .num_workers = workers,
                             .transform.resize = (stoker_size){ 12, 10 });
}

/* The GPU's run has the bytes of the CPU's, and `images` files or more were decoded there. */
static void expect_same(const stoker_dataset *dataset, stoker_loader_options options,
                        uint64_t images, const char *name)
{
    const uint64_t before = standin_nvimgcodec_images();
    const bool pins = options.pin_memory != STOKER_SWITCH_OFF;
    const uint64_t pageable = standin_nvimgcodec_pageable();
    (void)stk_cuda_run(dataset, &options, 50, &found);
    const uint64_t decoded = standin_nvimgcodec_images() - before;
    options.device = STOKER_DEVICE_CPU;
    options.decode = STOKER_DECODE_CPU;
    options.cache = STOKER_CACHE_NONE;
    options.convert_on_device = STOKER_SWITCH_AUTO;
    (void)stk_run(dataset, &options, &expected);
    cr_assert_eq(found.rc, expected.rc, "%s: %d, not %d: %s", name, found.rc, expected.rc,
                 found.error.message);
    cr_assert(stk_runs_equal(&expected, &found), "%s, %d workers", name, options.num_workers);
    cr_assert_geq(decoded, images, "%s: %llu images", name, (unsigned long long)decoded);
    cr_assert_eq(standin_nvimgcodec_pageable() - pageable, pins ? 0 : decoded, "%s", name);
}

/* ---- ways from the file to the batch ---- */

Test(decode, transforms_have_the_bits_of_the_cpu)
{
    stoker_transform transforms[6];
    for (int i = 0; i < 6; i++)
        transforms[i] = (stoker_transform)STOKER_TRANSFORM_INIT;
    transforms[0].resize = transforms[1].resize = (stoker_size){ 12, 10 };
    transforms[1].random_crop = (stoker_size){ 9, 9 };
    transforms[1].pad = 2;
    transforms[2].resize_shorter = 16;
    transforms[2].center_crop = (stoker_size){ 14, 13 };
    transforms[3].random_resized_crop = transforms[4].random_resized_crop = (stoker_size){ 11, 13 };
    transforms[1].flip = transforms[3].flip = true;
    transforms[3].cutout = 4;
    transforms[4].brightness = 0.4F;
    transforms[4].contrast = 0.3F;
    transforms[4].rotate_max = 20;
    transforms[4].blur = 3;
    transforms[5].resize = (stoker_size){ 256, 256 }; /* a lane has scratch for 17 of them */
    transforms[5].rotate_max = 20;
    transforms[5].blur = 3;
    open_set(&mixed, "?channels=3");
    for (int i = 0; i < 6; i++) {
        stoker_loader_options options = options_for(i % 4);
        options.transform = transforms[i];
        if (i == 5)
            options.batch_size = 40, options.epochs = 1;
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_NONE : STOKER_DTYPE_FLOAT32;
        options.layout = i % 3 == 0 ? STOKER_LAYOUT_NHWC : STOKER_LAYOUT_NCHW;
        options.convert_on_device = i == 3 || i == 5 ? STOKER_SWITCH_OFF : STOKER_SWITCH_AUTO;
        const uint64_t launches = standin_cuda_launches();
        expect_same(set.dataset, options, i == 5 ? 29 : 40, "transforms");
        if (i % 4 <
            2) /* three kernels or more for all images that wait: one by one 3 for each of 58 */
            cr_assert_lt(standin_cuda_launches() - launches, 2 * (i == 5 ? 29 : 58));
    }
    stk_jpeg_set_remove(&set);
}

Test(decode, caches_and_settings_change_nothing)
{
    static const stoker_cache caches[] = { STOKER_CACHE_NONE, STOKER_CACHE_ENCODED,
                                           STOKER_CACHE_AUTO, STOKER_CACHE_DEVICE };
    open_set(&mixed, "?channels=3");
    for (int i = 0; i < 8; i++) {
        stoker_loader_options options = options_for(i % 4);
        options.cache = caches[i / 2];
        options.batch_size = i % 2 == 0 ? 7 : 40;
        options.prefetch_batches = i % 2 == 0 ? 2 : 5;
        options.device_index = (uint32_t)i % 2;
        cr_assert_eq(cudaSetDevice(i % 2), cudaSuccess); /* the consumer's stream is there */
        options.last = (stoker_last)(i % 3);
        options.dtype = STOKER_DTYPE_FLOAT16;
        options.non_blocking = i != 3;
        options.pin_memory = i == 5 ? STOKER_SWITCH_OFF : STOKER_SWITCH_AUTO;
        expect_same(set.dataset, options, 20, stoker_cache_name(caches[i / 2]));
    }
    cr_assert_eq(cudaSetDevice(0), cudaSuccess);
    stk_jpeg_set_remove(&set);
}

Test(decode, images_of_one_size)
{
    open_set(&one_size, "?channels=3");
    for (int i = 0; i < 4; i++) {
        stoker_loader_options options = options_for(i);
        options.transform = (stoker_transform)STOKER_TRANSFORM_INIT;
        if (i >= 2)
            options.transform.random_crop = (stoker_size){ 20, 16 };
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_NONE : STOKER_DTYPE_FLOAT32;
        options.convert_on_device = i == 1 ? STOKER_SWITCH_OFF : STOKER_SWITCH_AUTO;
        expect_same(set.dataset, options, 40, "one size");
    }
    stk_jpeg_set_remove(&set);
}

Test(decode, gray_images)
{
    static const struct stk_jpeg_set_kind gray = { .gray = true };
    open_set(&gray, "");
    expect_same(set.dataset, options_for(2), 80, "gray");
    stk_jpeg_set_remove(&set);
}

/* Rows are mixed on the GPU, if it converts them. */
Test(decode, mixing_comes_after_it)
{
    open_set(&mixed, "?channels=3");
    stoker_loader_options options = options_for(2);
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.blend.mixup_alpha = 0.4F;
    options.convert_on_device = STOKER_SWITCH_ON;
    expect_same(set.dataset, options, 40, "blend");
    stk_jpeg_set_remove(&set);
}

/* ---- bad images, and those that the GPU refuses ---- */

static stoker_stats stats_of_run(stoker_loader_options options)
{
    static struct stk_cuda_consumer consumer; /* too large for a stack */
    stoker_stats stats = STOKER_STATS_INIT;
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    memset(&found, 0, sizeof(found));
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    stk_cuda_run_on(loader, &consumer, &found, UINT32_MAX);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    return stats;
}

Test(decode, bad_images_by_each_policy)
{
    open_set(&bad, "?channels=3");
    for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++)
        for (int32_t workers = 0; workers < 3; workers++) {
            stoker_loader_options options = options_for(workers);
            options.on_bad_sample = (stoker_on_bad)policy;
            options.cache = workers == 1 ? STOKER_CACHE_ENCODED : STOKER_CACHE_NONE;
            expect_same(set.dataset, options, policy == STOKER_ON_BAD_FAIL ? 0 : 40, "bad images");
            if (policy == STOKER_ON_BAD_FAIL) {
                cr_assert_lt(found.rc, 0);
                continue;
            }
            if (workers == 2)
                cr_assert_geq(stats_of_run(options).bad_samples, 6); /* three in each epoch */
        }
    stk_jpeg_set_remove(&set);
}

/* The CPU decodes them, to the same bytes. */
Test(decode, images_that_the_gpu_refuses)
{
    static const uint32_t statuses[] = { 0x3, 0x7, 0x13, 0x23, 0x83 };
    open_set(&mixed, "?channels=3");
    for (uint64_t i = 0; i < 5; i++) {
        standin_nvimgcodec_fail_image(1 + 7 * i, statuses[i]);
        expect_same(set.dataset, options_for((int32_t)(i % 3)), 40, "refused images");
        cr_assert(standin_nvimgcodec_failed());
    }
    stk_jpeg_set_remove(&set);
}

/* ---- figures ---- */

Test(decode, figures_say_what_was_decoded_where)
{
    open_set(&mixed, "?channels=3");
    stoker_loader_options options = options_for(2);
    const stoker_stats stats = stats_of_run(options);
    cr_assert(stats.decodes_on_device);
    cr_assert_str_eq(stats.decode_reason, "");
    /* Of each seven, one is CMYK and one gray. */
    uint64_t common = 0;
    for (uint64_t id = 0; id < STK_JPEG_SET_COUNT; id++)
        common += id % 7 != 3 && id % 7 != 5;
    cr_assert_eq(stats.device_images, 2 * common);
    cr_assert_gt(stats.device_image_bytes, 2 * common * 300);
    cr_assert_eq(stats.cache, STOKER_CACHE_NONE);
    options.decode = STOKER_DECODE_CPU;
    const stoker_stats host = stats_of_run(options);
    cr_assert_not(host.decodes_on_device);
    cr_assert_str_eq(host.decode_reason, "");
    cr_assert_eq(host.device_images, 0);
    cr_assert_lt(stats.copy_bytes, host.copy_bytes);
    cr_assert_geq(stats.device_bytes, host.device_bytes + 2 * (64U << 20)); /* two lanes */
    stk_jpeg_set_remove(&set);
}

/* A lane decodes many images at once. */
Test(decode, images_are_decoded_together)
{
    open_set(&mixed, "?channels=3");
    stoker_loader_options options = options_for(0);
    options.batch_size = 40;
    options.prefetch_batches = 2;
    (void)stats_of_run(options);
    cr_assert_leq(standin_nvimgcodec_batches() * 8, standin_nvimgcodec_images());
    stk_jpeg_set_remove(&set);
}

/* ---- where it is impossible ---- */

static int null_hook(void *self, void *scratch, stoker_row *fields, uint32_t count,
                     const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error)
{
    (void)self, (void)scratch, (void)fields, (void)count, (void)sample, (void)rng, (void)error;
    return STOKER_OK;
}

static void expect_refused(stoker_loader_options options, int code, const char *why)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_stats stats = STOKER_STATS_INIT;
    options.decode = STOKER_DECODE_DEVICE;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), code, "%s: %s", why,
                 error.message);
    cr_assert_not_null(strstr(error.message, why), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "decode DEVICE"), "%s", error.message);
    options.decode = STOKER_DECODE_AUTO;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_OK, "%s: %s",
                 why, error.message);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_not(stats.decodes_on_device);
    cr_assert_not_null(strstr(stats.decode_reason, why), "%s", stats.decode_reason);
    stoker_loader_destroy(&loader);
}

Test(decode, what_is_impossible_has_a_reason)
{
    const stoker_row_hook hook = { .struct_size = sizeof(hook), .apply = null_hook };
    open_set(&mixed, "?channels=3");
    stoker_loader_options options = options_for(1);
    options.device = STOKER_DEVICE_CPU;
    expect_refused(options, STOKER_EDEVICE, "batches stay in host memory");
    options = options_for(1);
    options.row_hook = &hook;
    expect_refused(options, STOKER_ENOTSUP, "hooks");
    options = options_for(1);
    options.transform.decode_scale = STOKER_DECODE_SCALE_FAST;
    expect_refused(options, STOKER_ENOTSUP, "decode_scale");
    options = options_for(1);
    options.cache = STOKER_CACHE_DECODED;
    expect_refused(options, STOKER_ENOTSUP, "cache DECODED");
    options = options_for(1);
    options.blend.mixup_alpha = 0.4F;
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.convert_on_device = STOKER_SWITCH_OFF;
    expect_refused(options, STOKER_ENOTSUP, "blend");
    standin_nvimgcodec_version(700);
    expect_refused(options_for(1), STOKER_EDEVICE, "version 0.7.0, needed is 0.8 or 0.9");
    standin_nvimgcodec_reset();
    stk_jpeg_set_remove(&set);
}

Test(decode, a_missing_library_has_a_reason)
{
    open_set(&mixed, "?channels=3");
    cr_assert_eq(setenv("STOKER_NVIMGCODEC", "/nowhere/libnvimgcodec.so.0", 1), 0);
    expect_refused(options_for(1), STOKER_EDEVICE, "/nowhere/libnvimgcodec.so.0");
    cr_assert_eq(unsetenv("STOKER_NVIMGCODEC"), 0);
    stk_jpeg_set_remove(&set);
}

Test(decode, a_set_without_files_of_images_has_a_reason)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    cr_assert_eq(stoker_dataset_open(&set.dataset, "synth:bytes?count=70&shape=8x8x3", NULL, NULL),
                 STOKER_OK);
    stoker_loader_options options = options_for(1);
    expect_refused(options, STOKER_ENOTSUP, "no files of images");
    stoker_dataset_close(&set.dataset);
}

Test(decode, the_option_is_checked)
{
    stoker_error error = { .message = "" };
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_dataset_open(&set.dataset, "synth:bytes?count=70&shape=8x8x3", NULL, NULL),
                 STOKER_OK);
    stoker_loader_options options = stk_small_options(.decode = (stoker_decode)3);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "decode 3"), "%s", error.message);
    stoker_dataset_close(&set.dataset);
}
