/* test_cache.c - rows kept in GPU memory cross the bus no more; and what cannot be kept is an
 * error, or is left out. The batches are test_determinism.c's.
 */
#include <stoker/arrays.h>

#include "support/files/image_folder.h"
#include "support/gpu/cuda_bits.h"
#include "support/gpu/transform_ranges.h"
#include "support/runs/memory_limit.h"
#include "support/runs/opened_loader.h"
#include "support/runs/random_hooks.h"
#include "support/sets/several_set.h"

enum { FILES = 150, FILE_BYTES = 4 * 5 * 3, PART_BYTES = 24 + 7 * 4 + 8 + 20 };

static struct stk_file_set files;
static struct several_set parts;
static stoker_error error;

static void begin_without_kernels(void)
{
    standin_cuda_reset(1);
    standin_cuda_kernels(NULL);
    cr_assert(stk_file_set_make(&files, FILES, 4, 5, 3));
    cr_assert(several_make_as(&parts, true));
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
    stk_file_set_remove(&files);
    several_remove(&parts);
    stk_cuda_bits_finish();
}

TestSuite(cuda_cache, .init = begin, .fini = finish);

static stoker_loader_options cache_options(void)
{
    return stk_small_options(.device = STOKER_DEVICE_CUDA, .cache = STOKER_CACHE_DEVICE,
                             .batch_size = 8, .epochs = STOKER_EPOCHS_ENDLESS);
}

/* ---- what crosses the bus, and what is reported ---- */

static stoker_stats take_epoch(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK)
        stoker_batch_release(&batch);
    cr_assert_eq(rc, STOKER_EPOCH_END);
    return stats_of(loader);
}

static void expect_empty(const stoker_loader *loader, uint64_t count, uint64_t row_bytes)
{
    const stoker_stats stats = stats_of(loader);
    char words[64];
    (void)snprintf(words, sizeof(words), "%d rows of %d bytes", (int)count, (int)row_bytes);
    cr_assert_eq(stats.cache, STOKER_CACHE_DEVICE);
    cr_assert_eq(stats.cache_bytes, count * row_bytes);
    cr_assert_eq(stats.cache_held_bytes, 0U);
    cr_assert(strstr(stats.cache_reason, words) != NULL, "%s", stats.cache_reason);
}

/* After the first epoch a batch brings a flag for each row and up to `small` bytes of ids, labels
 * and values, with gaps between them. */
static void expect_once(const stoker_dataset *dataset, stoker_loader_options options,
                        uint64_t row_bytes, uint64_t small)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    options.num_workers = 0; /* so that nothing is made before what it needs is held */
    options.prefetch_batches = 2;
    stoker_loader *loader = loader_of(dataset, &options);
    expect_empty(loader, count, row_bytes);
    const stoker_stats first = take_epoch(loader);
    const stoker_stats second = take_epoch(loader);
    const stoker_stats third = take_epoch(loader);
    cr_assert_eq(first.cache_held_bytes, count * row_bytes);
    cr_assert_geq(first.copy_bytes, count * row_bytes);
    cr_assert_eq(third.reads, first.reads);
    cr_assert_eq(third.cache_held_bytes, first.cache_held_bytes);
    cr_assert_eq(second.cache_hits - first.cache_hits, count);
    cr_assert_leq(third.copy_bytes - first.copy_bytes,
                  (8 * (small + 1) + 3 * 64) * (third.copies - first.copies));
    stoker_loader_destroy(&loader);
}

Test(cuda_cache, rows_cross_the_bus_once)
{
    stoker_loader_options options = cache_options();
    expect_once(files.dataset, options, FILE_BYTES, 8 + 8);
    options.cache = STOKER_CACHE_AUTO; /* which takes it */
    expect_once(parts.dataset, options, PART_BYTES, 8 + 8 + 8);
}

/* ---- what cannot be kept ---- */

static void expect_refused(const stoker_dataset *dataset, stoker_loader_options options, int code,
                           const char *words)
{
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s",
                 error.message);
    cr_assert(strstr(error.message, words) != NULL, "%s", error.message);
}

static void expect_kind(const stoker_dataset *dataset, stoker_loader_options options,
                        stoker_cache kind, const char *words)
{
    options.cache = STOKER_CACHE_AUTO;
    stoker_loader *loader = loader_of(dataset, &options);
    const stoker_stats stats = stats_of(loader);
    cr_assert_eq(stats.cache, kind, "%s", stats.cache_reason);
    cr_assert(strstr(stats.cache_reason, words) != NULL, "%s", stats.cache_reason);
    stoker_loader_destroy(&loader);
}

Test(cuda_cache, what_cannot_be_kept_is_reported_or_done_without)
{
    stoker_loader_options options = cache_options();
    stk_limit_cache(files.dataset, &options, FILES * FILE_BYTES);
    options.memory_bytes--;
    expect_refused(files.dataset, options, STOKER_ENOMEM,
                   "cache DEVICE: 150 rows of 60 bytes need more than the limit of 8999 bytes");
    expect_kind(files.dataset, options, STOKER_CACHE_NONE, "need more than the limit of 8999");
    options.memory_bytes++;
    expect_kind(files.dataset, options, STOKER_CACHE_DEVICE, "150 rows of 60 bytes, of ");
    options.memory_bytes = SEVERAL_COUNT * PART_BYTES;
    expect_refused(parts.dataset, options, STOKER_ENOMEM, "53 rows of 80 bytes need more than");
    options.memory_bytes = STOKER_BYTES_AUTO;
    expect_kind(files.dataset, options, STOKER_CACHE_DEVICE, "150 rows of 60 bytes, of ");
    options.convert_on_device = STOKER_SWITCH_OFF;
    expect_kind(files.dataset, options, STOKER_CACHE_DECODED, "convert_on_device is OFF");
    expect_refused(files.dataset, options, STOKER_ENOTSUP, "convert_on_device is OFF");
    options.convert_on_device = STOKER_SWITCH_AUTO;
    options.device = STOKER_DEVICE_CPU;
    expect_refused(files.dataset, options, STOKER_EDEVICE, "batches stay on the CPU");
}

Test(cuda_cache, rows_that_differ_in_size_are_refused)
{
    struct stk_image_folder photos;
    struct several_set varying;
    stoker_loader_options options = cache_options();
    cr_assert(several_make(&varying));
    expect_refused(varying.dataset, options, STOKER_ENOTSUP, "\"words\" varies in length");
    several_remove(&varying);
    stk_image_folder_make(&photos, true, "");
    options.transform =
        (stoker_transform){ .random_resized_crop = { 12, 15 }, STK_USUAL_AREA, STK_USUAL_RATIO };
    expect_refused(photos.dataset, options, STOKER_ENOTSUP,
                   "cache DEVICE: all rows must have the same size");
    stk_image_folder_remove(&photos);
}

Test(cuda_cache, rows_that_the_host_finishes_are_refused)
{
    static uint8_t images[2 * 12], masks[2 * 4];
    static struct stk_random_hooks hooks;
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_dataset *dataset = NULL;
    stoker_loader_options options = cache_options();
    stk_random_hooks_init(&hooks);
    options.row_hook = &hooks.row;
    expect_refused(files.dataset, options, STOKER_ENOTSUP,
                   "cache DEVICE: hooks work on finished rows");
    options.row_hook = NULL;
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.blend.mixup_alpha = 0.5F;
    expect_refused(parts.dataset, options, STOKER_ENOTSUP, "blend takes labels and masks");
    options.blend.mixup_alpha = 0.0F;
    for (int i = 0; i < 2; i++) {
        arrays[i].name = i == 0 ? "image" : "mask";
        arrays[i].kind = i == 0 ? STOKER_FIELD_KIND_IMAGE : STOKER_FIELD_KIND_MASK;
        arrays[i].dtype = STOKER_DTYPE_UINT8;
        arrays[i].rank = 3;
        arrays[i].shape[0] = arrays[i].shape[1] = 2;
        arrays[i].shape[2] = i == 0 ? 3 : 1;
        arrays[i].data = i == 0 ? images : masks;
    }
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, 2, NULL, NULL), STOKER_OK);
    options.transform.flip = true;
    expect_refused(dataset, options, STOKER_ENOTSUP, "masks take random crops and flips");
    stoker_dataset_close(&dataset);
}

/* The library has none, or none that this GPU could run. */
Test(cuda_cache_alone, without_kernels, .init = begin_without_kernels, .fini = finish)
{
    const bool built = stk_cuda_kernels_built();
    const char *reason = built ? "cudaLibraryGetKernel of stk_keep" : "built without nvcc";
    const int code = built ? STOKER_EDEVICE : STOKER_ENOTSUP;
    stoker_loader_options options = cache_options();
    expect_refused(files.dataset, options, code, reason);
    expect_refused(parts.dataset, options, code, reason);
    expect_kind(files.dataset, options, STOKER_CACHE_DECODED, reason);
    options.cache = STOKER_CACHE_AUTO;
    options.epochs = 3;
    (void)stk_cuda_bits_expect(files.dataset, options, 0, "no kernels");
}

/* The kernels are there, and for other GPUs. */
Test(cuda_cache, on_a_gpu_without_kernels)
{
    const char *reason = "compute capability 5.0; the kernels of this build";
    const stoker_loader_options options = cache_options();
    standin_cuda_capability(5, 0);
    expect_refused(files.dataset, options, STOKER_EDEVICE, reason);
    expect_kind(files.dataset, options, STOKER_CACHE_DECODED, reason);
}
