/* test_convert.c - what a batch holds is what the reference conversion makes of each
 * sample as stored: every pair of types, both layouts, with and without normalization.
 */
#include "kernels/convert/convert.h"
#include "loader/base/memory/memory.h"
#include "support/leaks.h"
#include "support/runs/scenario.h"
#include "support/sets/read_row.h"

struct oracle {
    const stoker_dataset *dataset;
    struct stk_convert_plan plan;
    uint8_t *stored;
    uint8_t *wanted;
};

static void oracle_open(struct oracle *oracle, const stoker_dataset *dataset,
                        const stoker_loader_options *options)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    const struct stk_convert_options convert = {
        .from = info->dtype,
        .to = options->dtype == STOKER_DTYPE_NONE ? info->dtype : options->dtype,
        .layout = options->layout,
        .elements = row_bytes / stoker_dtype_bytes(info->dtype),
        .channels = (uint32_t)info->shape[info->rank - 1],
        .scale = options->scale != STOKER_SCALE_AUTO ? options->scale
                 : info->dtype == STOKER_DTYPE_UINT8 ? 1.0F / 255.0F
                                                     : 1.0F,
        .mean = options->mean,
        .std = options->std,
        .mean_count = options->mean_count,
    };
    oracle->dataset = dataset;
    cr_assert_eq(stk_convert_plan_init(&oracle->plan, &convert), 0);
    oracle->stored = stk_calloc(row_bytes, 1);
    oracle->wanted = stk_calloc(oracle->plan.to_bytes, 1);
}

static void oracle_close(struct oracle *oracle)
{
    stk_free(oracle->stored);
    stk_free(oracle->wanted);
}

static void check_batch(struct oracle *oracle, const stoker_batch *batch)
{
    const uint8_t *images = batch->images.data;
    for (uint32_t row = 0; row < batch->count; row++) {
        stoker_label label;
        const void *stored = oracle->stored;
        cr_assert_eq(stk_read_row(oracle->dataset, batch->ids[row], oracle->stored,
                                  stoker_dataset_field_bytes(oracle->dataset, 0), &label, NULL),
                     STOKER_OK);
        stk_convert_rows_reference(&oracle->plan, &stored, 1, 0, oracle->wanted);
        cr_assert_arr_eq(images + row * oracle->plan.to_bytes, oracle->wanted,
                         oracle->plan.to_bytes, "%s to %s, layout %d, row %u",
                         stoker_dtype_name(oracle->plan.from), stoker_dtype_name(oracle->plan.to),
                         (int)oracle->plan.layout, row);
        cr_assert_eq(((const int64_t *)batch->labels.data)[row], label.index);
    }
}

static void check_loader(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    struct oracle oracle;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    oracle_open(&oracle, dataset, options);
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        cr_assert_eq(batch.images.dtype, oracle.plan.to);
        check_batch(&oracle, &batch);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    oracle_close(&oracle);
}

static void check_routes(const stoker_dataset *dataset, stoker_loader_options options)
{
    for (int32_t workers = 0; workers <= 2; workers += 2)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            check_loader(dataset, &options);
        }
}

static void check_types(const stoker_dataset *dataset, stoker_loader_options options)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_NONE, STOKER_DTYPE_FLOAT32,
                                          STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16 };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        options.dtype = types[i];
        check_routes(dataset, options);
    }
}

/* Rows of an odd length, so that most begin unaligned to anything. */
static stoker_loader_options odd_options(void)
{
    return stk_small_options(.batch_size = 13);
}

CleanTest(convert, every_stored_type_to_every_float)
{
    static const char *const types[] = { "uint8",   "int8",     "int16",   "int32",   "int64",
                                         "float16", "bfloat16", "float32", "float64", "uint16",
                                         "uint32",  "uint64",   "bool" };
    uint32_t opened = 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char spec[96];
        stoker_dataset *dataset = NULL;
        (void)snprintf(spec, sizeof(spec), "synth:bytes?count=40&shape=5x7&dtype=%s", types[i]);
        if (stoker_dataset_open(&dataset, spec, NULL, NULL) != STOKER_OK)
            continue;
        opened++;
        check_types(dataset, odd_options());
        stoker_dataset_close(&dataset);
    }
    cr_assert_geq(opened, 9);
}

CleanTest(convert, images_in_both_layouts_normalized_and_not)
{
    static const float mean[3] = { 0.4F, 0.5F, 0.6F };
    static const float std[3] = { 0.2F, 0.3F, 0.25F };
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 50, 5, 7, 3));
    cr_assert(stoker_dataset_get_info(set.dataset)->is_image);
    for (int layout = STOKER_LAYOUT_NHWC; layout <= STOKER_LAYOUT_NCHW; layout++) {
        stoker_loader_options options = odd_options();
        options.layout = (stoker_layout)layout;
        check_types(set.dataset, options);
        options.mean = mean;
        options.std = std;
        options.dtype = STOKER_DTYPE_FLOAT32;
        for (options.mean_count = 1; options.mean_count <= 3; options.mean_count += 2)
            check_routes(set.dataset, options);
        options.mean_count = 3;
        options.std = NULL;
        options.scale = 2;
        options.dtype = STOKER_DTYPE_FLOAT16;
        check_routes(set.dataset, options);
    }
    stk_file_set_remove(&set);
}

CleanTest(convert, shape_gives_the_layout)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 50, 5, 7, 3));
    static const uint64_t shapes[2][4] = { { 16, 5, 7, 3 }, { 16, 3, 5, 7 } };
    for (int layout = STOKER_LAYOUT_NHWC; layout <= STOKER_LAYOUT_NCHW; layout++) {
        stoker_loader *loader = NULL;
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_loader_options options = stk_small_options(.layout = (stoker_layout)layout);
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        cr_assert_eq(batch.images.rank, 4);
        cr_assert_arr_eq(batch.images.shape, shapes[layout], sizeof(shapes[layout]));
        cr_assert_eq(batch.labels.dtype, STOKER_DTYPE_INT64);
        cr_assert_eq(batch.labels.shape[0], 16);
        stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
    }
    stk_file_set_remove(&set);
}

/* create copies mean and std: what becomes of the caller's does not matter. */
CleanTest(convert, mean_and_std_are_copied)
{
    struct stk_file_set set;
    static struct stk_run expected;
    static struct stk_run found;
    float mean[3] = { 0.4F, 0.5F, 0.6F };
    float std[3] = { 0.2F, 0.3F, 0.25F };
    stoker_loader *loader = NULL;
    cr_assert(stk_file_set_make(&set, 50, 5, 7, 3));
    stoker_loader_options options =
        stk_small_options(.dtype = STOKER_DTYPE_FLOAT32, .mean = mean, .std = std, .mean_count = 3);
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    memset(mean, 0xFF, sizeof(mean));
    memset(std, 0xFF, sizeof(std));
    stk_run_on(loader, &found, UINT32_MAX);
    cr_assert(stk_runs_equal(&expected, &found));
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&set);
}

/* Values stay: the oracle's plan is checked against plain arithmetic in
 * unit/kernels/test_elements.c. */
CleanTest(convert, integers_to_wider_ones)
{
    static const struct {
        const char *from;
        stoker_dtype to;
    } pairs[] = { { "uint8", STOKER_DTYPE_INT64 },   { "uint8", STOKER_DTYPE_UINT16 },
                  { "int8", STOKER_DTYPE_INT16 },    { "int16", STOKER_DTYPE_INT32 },
                  { "uint16", STOKER_DTYPE_INT32 },  { "uint16", STOKER_DTYPE_INT64 },
                  { "uint32", STOKER_DTYPE_UINT64 }, { "bool", STOKER_DTYPE_UINT8 } };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char spec[96];
        stoker_dataset *dataset = NULL;
        stoker_loader_options options = odd_options();
        (void)snprintf(spec, sizeof(spec), "synth:bytes?count=40&shape=5x7&dtype=%s",
                       pairs[i].from);
        cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK, "%s", spec);
        options.dtype = pairs[i].to;
        check_routes(dataset, options);
        stoker_dataset_close(&dataset);
    }
}
