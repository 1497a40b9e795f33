/* test_cache.c - rows kept in GPU memory make the batches that every other cache makes, whatever
 * the setting; then they cross the bus no more; and what cannot be kept is an error, or is left
 * out.
 */
#include <criterion/criterion.h>

#include "support/cuda_kernels.h"
#include "support/cuda_run.h"
#include "support/image_folder.h"
#include "support/leaks.h"
#include "support/made_set.h"
#include "support/transform_ranges.h"

enum { SAMPLES = 150, ROW_BYTES = 4 * 5 * 3 };

static struct stk_file_set set;
static struct stk_run expected;
static struct stk_run found;
static stoker_error error;

static void begin_without_kernels(void)
{
    standin_cuda_reset(1);
    standin_cuda_kernels(NULL);
    standin_cuda_delay(30);
    cr_assert(stk_file_set_make(&set, SAMPLES, 4, 5, 3));
}

static void begin(void)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    begin_without_kernels();
    standin_cuda_use_kernels();
}

static void finish(void)
{
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0, "%lld left on the device", (long long)standin_cuda_live());
    stk_test_check_leaks();
}

TestSuite(cuda_cache, .init = begin, .fini = finish);

static stoker_loader_options cache_options(void)
{
    stoker_loader_options options = stk_small_options();
    options.device = STOKER_DEVICE_CUDA;
    options.cache = STOKER_CACHE_DEVICE;
    options.epochs = 3;
    return options;
}

static void expect_same(const stoker_dataset *dataset, stoker_loader_options options)
{
    (void)stk_cuda_run(dataset, &options, 50, &found);
    options.device = STOKER_DEVICE_CPU;
    options.cache = STOKER_CACHE_NONE;
    options.pin_memory = STOKER_SWITCH_AUTO;
    (void)stk_run(dataset, &options, &expected);
    cr_assert(expected.batches > 0 || options.on_bad_sample == STOKER_ON_BAD_FAIL);
    cr_assert(
        stk_runs_equal(&expected, &found),
        "pin %d non_blocking %d workers %d batch %u prefetch %u: %s %s after %u of %u batches",
        (int)options.pin_memory, options.non_blocking, (int)options.num_workers, options.batch_size,
        options.prefetch_batches, stoker_error_name(found.rc), found.error.message, found.batches,
        expected.batches);
    cr_assert_eq(standin_cuda_violations(), 0U);
}

Test(cuda_cache, same_bytes_for_every_setting)
{
    static const int32_t workers[] = { 0, 1, 3, STOKER_WORKERS_AUTO };
    static const uint32_t sizes[] = { 1, 16, 64, SAMPLES };
    stoker_loader_options options = cache_options();
    for (int i = 0; i < 64; i++) {
        options.num_workers = workers[i % 4];
        options.batch_size = sizes[i / 4 % 4];
        options.prefetch_batches = i / 16 % 2 == 0 ? STOKER_PREFETCH_AUTO : 3;
        options.non_blocking = i / 32 == 0;
        options.pin_memory = i % 3 == 0 ? STOKER_SWITCH_OFF : STOKER_SWITCH_ON;
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT32;
        options.layout = (stoker_layout)(i / 2 % 2);
        options.last = (stoker_last)(i / 4 % 3);
        expect_same(set.dataset, options);
    }
}

Test(cuda_cache, ranks_and_resume)
{
    stoker_loader_options options = cache_options();
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_state state;
    options.world_size = 3;
    for (options.rank = 0; options.rank < options.world_size; options.rank++)
        expect_same(set.dataset, options);
    options.rank = 1;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stoker_loader_state(loader, &state), STOKER_OK);
    stoker_loader_destroy(&loader);
    options.resume = &state;
    expect_same(set.dataset, options);
}

/* ---- images ---- */

Test(cuda_cache, transforms_come_behind_it)
{
    static const stoker_transform transforms[] = {
        { .random_crop = { 4, 5 }, .pad = 1, .flip = true, .cutout = 2, .fill = { 9, 8, 7 } },
        { .resize = { 3, 3 }, .flip = true },
        { .random_resized_crop = { 3, 4 }, STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true },
        { .resize_shorter = 3, .center_crop = { 3, 3 } },
    };
    stoker_loader_options options = cache_options();
    for (int i = 0; i < 8; i++) {
        options.transform = transforms[i / 2];
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT16;
        options.layout = STOKER_LAYOUT_NCHW;
        expect_same(set.dataset, options);
    }
}

Test(cuda_cache, images_of_any_size_are_kept_as_they_are_made)
{
    static const stoker_transform transforms[] = {
        { .resize = { 16, 20 }, .flip = true, .cutout = 4 },
        { .resize_shorter = 18, .center_crop = { 16, 16 } }, /* nothing random: kept as made */
    };
    struct stk_image_folder images;
    stoker_loader_options options = cache_options();
    options.dtype = STOKER_DTYPE_FLOAT32;
    stk_image_folder_make(&images, true, "");
    for (int i = 0; i < 2; i++) {
        options.transform = transforms[i];
        expect_same(images.dataset, options);
    }
    options.transform =
        (stoker_transform){ .random_resized_crop = { 12, 15 }, STK_USUAL_AREA, STK_USUAL_RATIO };
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, images.dataset, &options, &error), STOKER_ENOTSUP);
    cr_assert(strstr(error.message, "cache DEVICE: all rows must have the same size") != NULL, "%s",
              error.message);
    options.cache = STOKER_CACHE_AUTO;
    expect_same(images.dataset, options);
    stk_image_folder_remove(&images);
}

/* ---- bad samples ---- */

static enum stk_made_kind some_broken(uint64_t id)
{
    return id % 7 == 3   ? STK_MADE_BROKEN
           : id % 5 == 1 ? STK_MADE_SHORT
           : id % 3 == 2 ? STK_MADE_MEMORY
                         : STK_MADE_RAW;
}

Test(cuda_cache, bad_samples_are_dealt_with_as_on_the_cpu)
{
    struct stk_made_set made = { .count = 90, .row_bytes = 40, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&made));
    for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++)
        for (int32_t workers = 0; workers <= 3; workers += 3) {
            stoker_loader_options options = cache_options();
            options.on_bad_sample = (stoker_on_bad)policy;
            options.batch_size = 8;
            options.num_workers = workers;
            expect_same(made.dataset, options);
        }
    stk_made_set_close(&made);
}

/* ---- what crosses the bus, and what is reported ---- */

static stoker_stats stats_of(const stoker_loader *loader)
{
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    return stats;
}

static void take_epoch(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK)
        stoker_batch_release(&batch);
    cr_assert_eq(rc, STOKER_EPOCH_END);
}

Test(cuda_cache, rows_cross_the_bus_once)
{
    stoker_loader_options options = cache_options();
    stoker_loader *loader = NULL;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    options.num_workers = 0; /* so that nothing is made before what it needs is held */
    options.prefetch_batches = 2;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    const stoker_stats created = stats_of(loader);
    cr_assert_eq(created.cache, STOKER_CACHE_DEVICE);
    cr_assert_eq(created.cache_bytes, (uint64_t)SAMPLES * ROW_BYTES);
    cr_assert_eq(created.cache_held_bytes, 0U);
    cr_assert(strstr(created.cache_reason, "150 rows of 60 bytes") != NULL, "%s",
              created.cache_reason);
    take_epoch(loader);
    const stoker_stats first = stats_of(loader);
    cr_assert_eq(first.cache_held_bytes, (uint64_t)SAMPLES * ROW_BYTES);
    take_epoch(loader);
    take_epoch(loader);
    const stoker_stats third = stats_of(loader);
    cr_assert_eq(third.reads, first.reads);
    cr_assert_eq(third.cache_held_bytes, first.cache_held_bytes);
    const uint64_t small = (16 * (8 + 8) + 64) * (third.copies - first.copies);
    cr_assert_leq(third.copy_bytes - first.copy_bytes, small); /* labels, ids, flags */
    stoker_loader_destroy(&loader);
}

static void expect_refused(stoker_loader_options options, int code, const char *words)
{
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), code, "%s",
                 error.message);
    cr_assert(strstr(error.message, words) != NULL, "%s", error.message);
}

static void expect_kind(stoker_loader_options options, stoker_cache kind, const char *words)
{
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    const stoker_stats stats = stats_of(loader);
    cr_assert_eq(stats.cache, kind);
    cr_assert(strstr(stats.cache_reason, words) != NULL, "%s", stats.cache_reason);
    stoker_loader_destroy(&loader);
}

Test(cuda_cache, what_cannot_be_kept_is_reported_or_done_without)
{
    stoker_loader_options options = cache_options();
    options.cache_bytes = SAMPLES * ROW_BYTES - 1;
    expect_refused(options, STOKER_ENOMEM,
                   "cache DEVICE: 150 rows of 60 bytes need more than the limit of 8999 bytes");
    options.cache = STOKER_CACHE_AUTO;
    expect_kind(options, STOKER_CACHE_NONE, "need more than the limit of 8999 bytes");
    options.cache_bytes++;
    expect_kind(options, STOKER_CACHE_DEVICE, "150 rows of 60 bytes, of ");
    options.cache_bytes = STOKER_BYTES_AUTO;
    expect_kind(options, STOKER_CACHE_DEVICE, "150 rows of 60 bytes, of ");
    options.convert_on_device = STOKER_SWITCH_OFF;
    expect_kind(options, STOKER_CACHE_DECODED, "convert_on_device is OFF");
    options.cache = STOKER_CACHE_DEVICE;
    expect_refused(options, STOKER_ENOTSUP, "convert_on_device is OFF");
    options.convert_on_device = STOKER_SWITCH_AUTO;
    options.device = STOKER_DEVICE_CPU;
    expect_refused(options, STOKER_EDEVICE, "batches stay on the CPU");
}

/* The library has none, or none that this GPU could run. */
Test(cuda_cache_alone, without_kernels, .init = begin_without_kernels, .fini = finish)
{
    const bool built = stk_cuda_kernels_built();
    const char *reason = built ? "cudaLibraryGetKernel of stk_keep" : "built without nvcc";
    stoker_loader_options options = cache_options();
    expect_refused(options, built ? STOKER_EDEVICE : STOKER_ENOTSUP, reason);
    options.cache = STOKER_CACHE_AUTO;
    expect_kind(options, STOKER_CACHE_DECODED, reason);
    expect_same(set.dataset, options);
}

/* The kernels are there, and for other GPUs. */
Test(cuda_cache, on_a_gpu_without_kernels)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_loader_options options = cache_options();
    standin_cuda_capability(5, 0);
    expect_refused(options, STOKER_EDEVICE, "compute capability 5.0; the kernels of this build");
    options.cache = STOKER_CACHE_AUTO;
    expect_kind(options, STOKER_CACHE_DECODED, "compute capability 5.0; the kernels of this build");
}

/* Auto, where it is device, is as any other. */
Test(cuda_cache, auto_gives_the_same_bytes)
{
    stoker_loader_options options = cache_options();
    options.cache = STOKER_CACHE_AUTO;
    options.dtype = STOKER_DTYPE_BFLOAT16;
    expect_same(set.dataset, options);
}
