/* test_cache_fields.c - samples of several parts and fields kept in GPU memory: the bytes of the
 * CPU, whatever the setting; then only what values() makes crosses the bus; and what cannot be kept
 * is refused by name, or done without.
 */
#include <criterion/criterion.h>

#include <stoker/arrays.h>

#include "support/cuda_kernels.h"
#include "support/cuda_run.h"
#include "support/leaks.h"
#include "support/opened_loader.h"
#include "support/several_set.h"

enum {
    SAMPLES = 45,
    IMAGE = 6 * 5 * 3,
    MASK = 6 * 5,
    LONG = 66001, /* more than a block of the kernel copies, and no multiple of 8 */
    KEPT = IMAGE + 12 + 4 + MASK + LONG,
    ENCODED = IMAGE + 12 + 4
};

/* part 0, file     "image" 6 x 5 x 3 uint8      a codec that inverts the bytes
 * part 1, file     "box" 3 x float32, "flags" 2 x uint16
 * part 2, memory   "mask" 6 x 5 x 1 uint8
 * part 3, memory   "long" 66001 x uint8
 * values()         "label" int64, "weight" 2 x float32 */
static struct {
    stoker_dataset *dataset;
    stoker_codec codec;
    int fd;
    bool masked; /* "mask" is one; else an array */
    bool broken; /* some images are */
    uint8_t file[SAMPLES * ENCODED];
    uint8_t masks[SAMPLES * MASK];
    uint8_t longs[SAMPLES + LONG];
} set;

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    out->count = SAMPLES;
    out->field_count = 7;
    out->part_count = 4;
    out->file_count = 1;
    out->encoded_bytes_max = IMAGE;
    return STOKER_OK;
}

static int field(const void *self, uint32_t number, stoker_field_info *out)
{
    static const stoker_field_info fields[7] = {
        { .name = "image",
          .kind = STOKER_FIELD_KIND_IMAGE,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 3,
          .shape = { 6, 5, 3 } },
        { .name = "box", .dtype = STOKER_DTYPE_FLOAT32, .rank = 1, .shape = { 3 }, .part = 1 },
        { .name = "flags", .dtype = STOKER_DTYPE_UINT16, .rank = 1, .shape = { 2 }, .part = 1 },
        { .name = "mask", .dtype = STOKER_DTYPE_UINT8, .rank = 3, .shape = { 6, 5, 1 }, .part = 2 },
        { .name = "long", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { LONG }, .part = 3 },
        { .name = "label", .dtype = STOKER_DTYPE_INT64, .part = STOKER_NO_PART },
        { .name = "weight",
          .dtype = STOKER_DTYPE_FLOAT32,
          .rank = 1,
          .shape = { 2 },
          .part = STOKER_NO_PART },
    };
    (void)self;
    *out = fields[number];
    out->struct_size = sizeof(*out);
    if (number == 3 && set.masked)
        out->kind = STOKER_FIELD_KIND_MASK;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)self, (void)error;
    for (uint32_t i = 0; i < count; i++, parts += 4) {
        parts[0] = (stoker_part){ .extent = { .offset = ids[i] * ENCODED, .bytes = IMAGE },
                                  .codec = &set.codec };
        parts[1] = (stoker_part){ .extent = { .offset = ids[i] * ENCODED + IMAGE, .bytes = 16 } };
        parts[2] =
            (stoker_part){ .extent = { .memory = set.masks + ids[i] * MASK, .bytes = MASK } };
        parts[3] = (stoker_part){ .extent = { .memory = set.longs + ids[i], .bytes = LONG } };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t number, const uint64_t *ids, uint32_t count, void *out)
{
    (void)self;
    for (uint32_t i = 0; i < count; i++)
        if (number == 5)
            ((int64_t *)out)[i] = (int64_t)ids[i] * 3;
        else
            ((float *)out)[2 * i] = ((float *)out)[2 * i + 1] = (float)ids[i];
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t number, stoker_file *out)
{
    (void)self, (void)number;
    *out = (stoker_file){ .path = "samples", .fd = set.fd, .size = sizeof(set.file) };
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    (void)self, (void)scratch, (void)error;
    for (size_t at = 0; at < row_bytes; at++)
        ((uint8_t *)row)[at] = (uint8_t)~in->bytes[at];
    return set.broken && in->sample % 7 == 3 ? STOKER_ECORRUPT : STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "fixed",
                                        .describe = describe,
                                        .field = field,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of };

static void open_set(bool masked)
{
    set.masked = masked;
    set.broken = false;
    set.codec =
        (stoker_codec){ .struct_size = sizeof(stoker_codec), .name = "inverted", .decode = decode };
    for (size_t at = 0; at < sizeof(set.file); at++)
        set.file[at] = (uint8_t)stk_mix64(at);
    for (size_t at = 0; at < sizeof(set.masks); at++)
        set.masks[at] = (uint8_t)stk_mix64(at + 1000000);
    for (size_t at = 0; at < sizeof(set.longs); at++)
        set.longs[at] = (uint8_t)stk_mix64(at + 2000000);
    set.fd = memfd_create("fixed", MFD_CLOEXEC);
    cr_assert_eq(write(set.fd, set.file, sizeof(set.file)), (ssize_t)sizeof(set.file));
    cr_assert_eq(stoker_dataset_create(&set.dataset, &ops, NULL, NULL), STOKER_OK);
}

static void begin_without_kernels(void)
{
    standin_cuda_reset(1);
    standin_cuda_kernels(NULL);
    standin_cuda_delay(20);
    open_set(false);
}

static void begin(void)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    begin_without_kernels();
    standin_cuda_use_kernels();
}

static void close_set(void)
{
    stoker_dataset_close(&set.dataset);
    (void)close(set.fd);
}

static void finish(void)
{
    close_set();
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0, "%lld left on the device", (long long)standin_cuda_live());
    stk_test_check_leaks();
}

TestSuite(cuda_cache_fields, .init = begin, .fini = finish);

/* ---- runs -------------------------------------------------------------------------- */

struct seen {
    int rc;
    uint64_t rows, hash;
    stoker_stats stats;
    stoker_error error;
};

static uint64_t hash_batch(uint64_t hash, const stoker_batch *batch)
{
    hash = stk_hash_bytes(hash, batch->ids, batch->count * sizeof(batch->ids[0]));
    for (uint32_t i = 0; i < batch->field_count; i++) {
        const stoker_tensor *tensor = &batch->fields[i].values;
        const bool on_device = batch->device == STOKER_DEVICE_CUDA;
        size_t bytes = stoker_dtype_bytes(tensor->dtype);
        for (uint32_t axis = 0; axis < tensor->rank; axis++)
            bytes *= (size_t)tensor->shape[axis];
        if (bytes > 0)
            hash = stk_hash_bytes(hash, on_device ? standin_cuda_view(tensor->data) : tensor->data,
                                  bytes);
    }
    return hash;
}

/* Run to the end, waiting for each batch. */
static struct seen run(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    static struct stk_cuda_consumer consumer;
    stoker_batch batch = STOKER_BATCH_INIT;
    struct seen seen = { .stats = STOKER_STATS_INIT };
    stoker_loader *loader = NULL;
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    seen.rc = stoker_loader_create(&loader, dataset, options, &seen.error);
    cr_assert_eq(seen.rc, STOKER_OK, "%s", seen.error.message);
    while (seen.rc >= 0 && (seen.rc = stoker_loader_next(loader, &batch, 20000)) >= 0 &&
           seen.rc != STOKER_FINISHED) {
        if (seen.rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(stoker_batch_wait_on(&batch, consumer.stream), STOKER_OK);
        stk_cuda_consumer_wait(&consumer);
        seen.hash = hash_batch(seen.hash, &batch);
        seen.rows += batch.count;
        cr_assert_eq(stoker_batch_release_on(&batch, consumer.stream), STOKER_OK);
    }
    cr_assert_eq(stoker_loader_stats(loader, &seen.stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    return seen;
}

static stoker_loader_options cache_options(void)
{
    stoker_loader_options options = stk_small_options();
    options.device = STOKER_DEVICE_CUDA;
    options.cache = STOKER_CACHE_DEVICE;
    options.batch_size = 8;
    options.epochs = 3;
    return options;
}

/* On the GPU as on the CPU. Returns what the GPU's run was. */
static struct seen expect_same(const stoker_dataset *dataset, stoker_loader_options options,
                               const char *what, int number)
{
    const struct seen found = run(dataset, &options);
    options.device = STOKER_DEVICE_CPU;
    options.cache = STOKER_CACHE_NONE;
    options.pin_memory = STOKER_SWITCH_AUTO;
    const struct seen expected = run(dataset, &options);
    cr_assert_eq(found.rc, expected.rc, "%s %d", what, number);
    cr_assert_eq(found.rows, expected.rows, "%s %d", what, number);
    cr_assert_eq(found.hash, expected.hash, "%s %d", what, number);
    cr_assert_eq(standin_cuda_violations(), 0U);
    return found;
}

Test(cuda_cache_fields, same_bytes_for_every_setting)
{
    static const int32_t workers[] = { 0, 1, 3, STOKER_WORKERS_AUTO };
    static const uint32_t sizes[] = { 1, 8, SAMPLES };
    stoker_field_options fields[2] = { STOKER_FIELD_OPTIONS_INIT, STOKER_FIELD_OPTIONS_INIT };
    stoker_loader_options options = cache_options();
    fields[0].name = "flags"; /* wider than stored, and narrower */
    fields[0].dtype = STOKER_DTYPE_INT64;
    fields[1].name = "box";
    fields[1].dtype = STOKER_DTYPE_FLOAT16;
    options.fields = fields;
    for (int i = 0; i < 12; i++) {
        options.num_workers = workers[i % 4];
        options.batch_size = sizes[i % 3];
        options.field_count = (uint32_t)i / 4 % 2 * 2;
        options.prefetch_batches = i / 6 == 0 ? STOKER_PREFETCH_AUTO : 3;
        options.non_blocking = i / 8 == 0;
        options.pin_memory = i % 5 == 0 ? STOKER_SWITCH_OFF : STOKER_SWITCH_ON;
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT32;
        options.last = (stoker_last)(i % 3);
        const struct seen seen = expect_same(set.dataset, options, "setting", i);
        cr_assert_eq(seen.stats.cache, STOKER_CACHE_DEVICE);
        cr_assert_eq(seen.stats.cache_bytes,
                     SAMPLES * (KEPT + (options.field_count == 0 ? 0 : 12 - 6)));
    }
}

Test(cuda_cache_fields, images_are_transformed_behind_it)
{
    static const stoker_transform transforms[] = {
        { .random_crop = { 4, 5 }, .pad = 1, .flip = true, .cutout = 2, .fill = { 9, 8, 7 } },
        { .resize = { 3, 3 }, .flip = true },
        { .center_crop = { 4, 4 } },
    };
    stoker_loader_options options = cache_options();
    options.layout = STOKER_LAYOUT_NCHW;
    for (int i = 0; i < 6; i++) {
        options.transform = transforms[i / 2];
        options.dtype = i % 2 == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT16;
        (void)expect_same(set.dataset, options, "transform", i);
    }
}

Test(cuda_cache_fields, bad_samples_and_samples_drawn_twice)
{
    double weights[SAMPLES];
    stoker_order order = STOKER_ORDER_INIT;
    stoker_loader_options options = cache_options();
    for (int i = 0; i < SAMPLES; i++)
        weights[i] = i % 5;
    order.kind = STOKER_ORDER_WEIGHTED;
    order.weights = weights;
    order.weight_count = SAMPLES;
    options.order = &order;
    for (options.num_workers = 0; options.num_workers < 4; options.num_workers += 3)
        (void)expect_same(set.dataset, options, "weighted", options.num_workers);
    options.order = NULL;
    set.broken = true;
    for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++)
        for (options.num_workers = 0; options.num_workers < 4; options.num_workers += 3) {
            options.on_bad_sample = (stoker_on_bad)policy;
            (void)expect_same(set.dataset, options, "policy", policy);
        }
}

/* ---- what crosses the bus ------------------------------------------------------------ */

static void take_epoch(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK)
        stoker_batch_release(&batch);
    cr_assert_eq(rc, STOKER_EPOCH_END);
}

static stoker_stats stats_of(const stoker_loader *loader)
{
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    return stats;
}

Test(cuda_cache_fields, only_values_cross_the_bus_later)
{
    stoker_loader_options options = cache_options();
    options.epochs = STOKER_EPOCHS_ENDLESS;
    options.num_workers = 0; /* so that nothing is made before what it needs is held */
    options.prefetch_batches = 2;
    options.cache = STOKER_CACHE_AUTO; /* which takes it */
    stoker_loader *loader = loader_of(set.dataset, &options);
    const stoker_stats created = stats_of(loader);
    cr_assert_eq(created.cache, STOKER_CACHE_DEVICE);
    cr_assert_eq(created.cache_bytes, (uint64_t)SAMPLES * KEPT);
    cr_assert(strstr(created.cache_reason, "45 rows of 66137 bytes") != NULL, "%s",
              created.cache_reason);
    take_epoch(loader);
    const stoker_stats first = stats_of(loader);
    cr_assert_eq(first.cache_held_bytes, (uint64_t)SAMPLES * KEPT);
    cr_assert_geq(first.copy_bytes, (uint64_t)SAMPLES * KEPT);
    take_epoch(loader);
    const stoker_stats second = stats_of(loader);
    /* Two fields of values, ids and flags, with the gaps between them. */
    cr_assert_leq(second.copy_bytes - first.copy_bytes,
                  (second.copies - first.copies) * (8 * (8 + 8 + 8 + 1) + 3 * 64));
    cr_assert_eq(second.reads, first.reads);
    cr_assert_eq(second.cache_hits - first.cache_hits, SAMPLES);
    stoker_loader_destroy(&loader);
}

/* Field 0 that no kernel converts is kept as delivered. */
Test(cuda_cache_fields, rows_of_floats_are_kept_as_delivered)
{
    static float x[SAMPLES * 13];
    static int32_t y[SAMPLES];
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_dataset *dataset = NULL;
    stoker_loader_options options = cache_options();
    for (int i = 0; i < SAMPLES * 13; i++)
        x[i] = (float)i / 7;
    for (int i = 0; i < SAMPLES; i++)
        y[i] = i * i;
    arrays[0].name = "row";
    arrays[0].data = x;
    arrays[0].dtype = STOKER_DTYPE_FLOAT32;
    arrays[0].rank = 1;
    arrays[0].shape[0] = 13;
    arrays[1].name = "label";
    arrays[1].data = y;
    arrays[1].dtype = STOKER_DTYPE_INT32;
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, SAMPLES, NULL, NULL), STOKER_OK);
    for (int i = 0; i < 8; i++) {
        options.num_workers = i % 2 * 2;
        options.cache = i % 4 < 2 ? STOKER_CACHE_DEVICE : STOKER_CACHE_AUTO;
        options.dtype = i < 4 ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_BFLOAT16;
        options.convert_on_device = i == 3 ? STOKER_SWITCH_OFF : STOKER_SWITCH_AUTO;
        cr_assert_eq(expect_same(dataset, options, "floats", i).stats.cache, STOKER_CACHE_DEVICE);
    }
    stoker_dataset_close(&dataset);
}

/* ---- what cannot be kept --------------------------------------------------------------- */

static void expect_refused(const stoker_dataset *dataset, stoker_loader_options options, int code,
                           const char *words)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s",
                 error.message);
    cr_assert(strstr(error.message, words) != NULL, "%s", error.message);
}

Test(cuda_cache_fields, what_cannot_be_kept_is_refused_by_name)
{
    struct several_set varying;
    stoker_loader_options options = cache_options();
    options.cache_bytes = SAMPLES * KEPT - 1;
    expect_refused(set.dataset, options, STOKER_ENOMEM, "45 rows of 66137 bytes need more than");
    options.cache_bytes = STOKER_BYTES_AUTO;
    cr_assert(several_make(&varying));
    expect_refused(varying.dataset, options, STOKER_ENOTSUP, "\"words\" varies in length");
    options.cache = STOKER_CACHE_AUTO;
    cr_assert_neq(expect_same(varying.dataset, options, "varying", 0).stats.cache,
                  STOKER_CACHE_DEVICE);
    several_remove(&varying);
}

/* The library has none, or none that this GPU could run. */
Test(cuda_cache_fields_alone, without_kernels, .init = begin_without_kernels, .fini = finish)
{
    const bool built = stk_cuda_kernels_built();
    stoker_loader_options options = cache_options();
    expect_refused(set.dataset, options, built ? STOKER_EDEVICE : STOKER_ENOTSUP,
                   built ? "cudaLibraryGetKernel of stk_keep" : "built without nvcc");
    options.cache = STOKER_CACHE_AUTO;
    cr_assert_neq(expect_same(set.dataset, options, "no kernels", 0).stats.cache,
                  STOKER_CACHE_DEVICE);
}

Test(cuda_cache_fields, mixing_is_left_to_the_host)
{
    stoker_loader_options options = cache_options();
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.blend.mixup_alpha = 0.5F;
    expect_refused(set.dataset, options, STOKER_ENOTSUP, "blend takes labels and masks");
    options.cache = STOKER_CACHE_AUTO;
    options.convert_on_device = STOKER_SWITCH_OFF; /* so that the images are mixed there as well */
    cr_assert_neq(expect_same(set.dataset, options, "mixed", 0).stats.cache, STOKER_CACHE_DEVICE);
}

/* A mask is made by the host: it is kept with its image if both are the same each time. */
Test(cuda_cache_fields, masks_are_kept_unless_something_is_random)
{
    stoker_loader_options options = cache_options();
    close_set();
    open_set(true);
    (void)expect_same(set.dataset, options, "as stored", 0);
    options.transform.resize = (stoker_size){ 4, 7 };
    options.dtype = STOKER_DTYPE_FLOAT32;
    (void)expect_same(set.dataset, options, "resized", 0);
    options.transform.flip = true;
    expect_refused(set.dataset, options, STOKER_ENOTSUP, "masks take random crops and flips");
    options.cache = STOKER_CACHE_AUTO;
    cr_assert_neq(expect_same(set.dataset, options, "random", 0).stats.cache, STOKER_CACHE_DEVICE);
}
