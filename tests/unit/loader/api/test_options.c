/* test_options.c - every absurd option gets its documented code and a line that names it. */
#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "loader/base/struct_size.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

static void refuse(const stoker_dataset *dataset, stoker_loader_options options, int code,
                   const char *word)
{
    stoker_loader *loader = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s: %s", word,
                 error.message);
    cr_assert_null(loader);
    cr_assert_eq(error.code, code, "%s", word);
    cr_assert_eq(error.stage, STOKER_STAGE_OPTIONS);
    cr_assert_not_null(strstr(error.message, word), "\"%s\" is not in: %s", word, error.message);
}

static void accept(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(error.code, 0); /* left alone on success */
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

/* One line per case: set the field in a fresh copy, expect the code and the field's name. */
#define REFUSE(field, value, code)                                                                 \
    do {                                                                                           \
        stoker_loader_options changed = stk_small_options();                                       \
        changed.field = (value);                                                                   \
        refuse(dataset, changed, code, #field);                                                    \
    } while (0)
#define ACCEPT(field, value)                                                                       \
    do {                                                                                           \
        stoker_loader_options changed = stk_small_options();                                       \
        changed.field = (value);                                                                   \
        accept(dataset, changed);                                                                  \
    } while (0)

CleanTest(options, counts_out_of_range)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=4x4x3");
    REFUSE(batch_size, 0, STOKER_EINVAL);
    REFUSE(batch_size, STOKER_BATCH_MAX + 1, STOKER_EINVAL);
    REFUSE(batch_size, UINT32_MAX, STOKER_EINVAL);
    ACCEPT(batch_size, 101); /* one short batch */
    ACCEPT(batch_size, STOKER_BATCH_MAX);
    REFUSE(num_workers, -2, STOKER_EINVAL);
    REFUSE(num_workers, INT32_MIN, STOKER_EINVAL);
    REFUSE(num_workers, STOKER_WORKERS_MAX + 1, STOKER_EINVAL);
    REFUSE(prefetch_batches, 0, STOKER_EINVAL);
    REFUSE(prefetch_batches, 1, STOKER_EINVAL);
    ACCEPT(prefetch_batches, STOKER_PREFETCH_AUTO);
    REFUSE(prefetch_batches, STOKER_PREFETCH_MAX + 1, STOKER_EINVAL);
    ACCEPT(prefetch_batches, STOKER_PREFETCH_MAX);
    REFUSE(read_depth, 0, STOKER_EINVAL);
    REFUSE(read_depth, STOKER_READ_DEPTH_MAX + 1, STOKER_EINVAL);
    ACCEPT(read_depth, STOKER_READ_DEPTH_AUTO);
    REFUSE(epochs, 0, STOKER_EINVAL);
    REFUSE(batch_window, 0, STOKER_EINVAL);
    REFUSE(batch_window, STOKER_BATCH_WINDOW_MAX + 1, STOKER_EINVAL);
    ACCEPT(epochs, STOKER_EPOCHS_ENDLESS);
    ACCEPT(epochs, STOKER_EPOCHS_ENDLESS - 1);
    REFUSE(memory_bytes, 0, STOKER_ENOMEM); /* slots take more */
    ACCEPT(memory_bytes, STOKER_BYTES_AUTO);
    ACCEPT(memory_bytes, STOKER_BYTES_AUTO - 1);
    ACCEPT(read_depth, STOKER_READ_DEPTH_MAX);
    REFUSE(trace_events, STOKER_TRACE_EVENTS_MAX + 1, STOKER_EINVAL);
    REFUSE(trace_events, UINT32_MAX, STOKER_EINVAL);
    ACCEPT(trace_events, 1);
    REFUSE(rank, 1, STOKER_EINVAL);
    REFUSE(rank, UINT32_MAX - 1, STOKER_EINVAL);
    REFUSE(world_size, 0, STOKER_EINVAL);
    REFUSE(world_size, (1U << 20) + 1, STOKER_EINVAL);
    ACCEPT(world_size, 1U << 20);
    REFUSE(local_world_size, (1U << 20) + 1, STOKER_EINVAL);
    REFUSE(local_rank, 1, STOKER_EINVAL); /* local_world_size is 0 */
    ACCEPT(local_world_size, 2);
    REFUSE(transform.reserved[0], 1, STOKER_EINVAL);
    REFUSE(transform.reserved[31], 1, STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

CleanTest(options, choices_out_of_range)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=4x4x3");
    REFUSE(device, (stoker_device)4, STOKER_EINVAL);
    REFUSE(device, (stoker_device)-1, STOKER_EINVAL);
    REFUSE(convert_on_device, (stoker_switch)3, STOKER_EINVAL);
    REFUSE(convert_on_device, STOKER_SWITCH_ON, STOKER_ENOTSUP); /* on the CPU */
    REFUSE(pin_memory, (stoker_switch)3, STOKER_EINVAL);
    REFUSE(pin_memory, (stoker_switch)-1, STOKER_EINVAL);
    REFUSE(cache, (stoker_cache)5, STOKER_EINVAL);
    REFUSE(cache, STOKER_CACHE_DEVICE, STOKER_EDEVICE);
    REFUSE(layout, (stoker_layout)2, STOKER_EINVAL);
    REFUSE(on_bad_sample, (stoker_on_bad)3, STOKER_EINVAL);
    REFUSE(deal, (stoker_deal)2, STOKER_EINVAL);
    REFUSE(deal, (stoker_deal)-1, STOKER_EINVAL);
    REFUSE(dtype, STOKER_DTYPE_INT8, STOKER_ETYPE);
    REFUSE(dtype, STOKER_DTYPE_FLOAT64, STOKER_ETYPE);
    REFUSE(dtype, (stoker_dtype)99, STOKER_EINVAL);
    REFUSE(dtype, STOKER_DTYPE_FLOAT64, STOKER_ETYPE);
    ACCEPT(dtype, STOKER_DTYPE_FLOAT16);
    stoker_dataset_close(&dataset);
}

static void check_normalization(const stoker_dataset *dataset, float scale, float mean, float std,
                                uint32_t count, int code, const char *word)
{
    const float means[4] = { mean, mean, mean, mean };
    const float stds[4] = { 1, std, 1, 1 };
    stoker_loader_options options =
        stk_small_options(.dtype = STOKER_DTYPE_FLOAT32, .scale = scale, .mean = means, .std = stds,
                          .mean_count = count);
    if (code == STOKER_OK)
        accept(dataset, options);
    else
        refuse(dataset, options, code, word);
}

CleanTest(options, normalization_out_of_range)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=4x4x3");
    const float one[3] = { 1, 1, 1 };
    check_normalization(dataset, 1, 0.5F, 0.5F, 3, STOKER_OK, "");
    check_normalization(dataset, 1, 0.5F, 0.5F, 1, STOKER_OK, "");
    check_normalization(dataset, -2, 0.5F, 0.5F, 1, STOKER_OK, "");
    check_normalization(dataset, 0, 0, 1, 3, STOKER_EINVAL, "scale");
    check_normalization(dataset, NAN, 0, 1, 3, STOKER_EINVAL, "scale");
    check_normalization(dataset, INFINITY, 0, 1, 3, STOKER_EINVAL, "scale");
    check_normalization(dataset, 1, NAN, 1, 3, STOKER_EINVAL, "mean[0]");
    check_normalization(dataset, 1, -INFINITY, 1, 3, STOKER_EINVAL, "mean[0]");
    check_normalization(dataset, 1, 0, 0, 3, STOKER_EINVAL, "std[1]");
    check_normalization(dataset, 1, 0, -1, 3, STOKER_EINVAL, "std[1]");
    check_normalization(dataset, 1, 0, NAN, 3, STOKER_EINVAL, "std[1]");
    check_normalization(dataset, 1, 0, 1, 2, STOKER_EINVAL, "mean_count");
    check_normalization(dataset, 1, 0, 1, 4, STOKER_EINVAL, "mean_count");
    check_normalization(dataset, 1, 0, 1, 0, STOKER_EINVAL, "mean_count");
    stoker_loader_options options = stk_small_options(.dtype = STOKER_DTYPE_FLOAT32);
    options.mean_count = 3; /* but there are no means */
    refuse(dataset, options, STOKER_EINVAL, "mean_count");
    options.dtype = STOKER_DTYPE_UINT8; /* stays as it is: nothing to scale */
    options.mean = one;
    options.mean_count = 3;
    refuse(dataset, options, STOKER_EINVAL, "mean");
    stoker_dataset_close(&dataset);
}

CleanTest(options, layouts_that_do_not_fit_the_set)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=12x8");
    REFUSE(layout, STOKER_LAYOUT_NCHW, STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

CleanTest(options, drop_last_must_leave_something)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=3");
    stoker_loader_options options =
        stk_small_options(.last = STOKER_LAST_DROP, .batch_size = 51, .world_size = 2);
    refuse(dataset, options, STOKER_EBATCH, "last DROP");
    options.batch_size = 50;
    accept(dataset, options);
    stoker_dataset_close(&dataset);
}

CleanTest(options, struct_size_gives_the_version)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=3");
    const size_t first = STK_SIZE_UP_TO(stoker_loader_options, row_hook);
    const size_t sizes[] = { 0, 1, sizeof(size_t), first - 1, STK_STRUCT_BYTES_MAX + 1, SIZE_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        stoker_loader *loader = NULL;
        stoker_error error = { .code = 0 };
        stoker_loader_options options = stk_small_options(.struct_size = sizes[i]);
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
        cr_assert_null(loader);
        cr_assert_eq(error.code, STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, "struct_size"));
    }
    stoker_loader *loader = NULL;
    stoker_loader_options older = stk_small_options(.struct_size = first);
    memset((char *)&older + first, 0xA5, sizeof(older) - first);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &older, NULL), STOKER_OK);
    stoker_loader_destroy(&loader);
    cr_assert_eq(stoker_loader_create(&loader, dataset, NULL, NULL), STOKER_OK); /* all defaults */
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* The functions are for callers that cannot use the macros, and for those with an older struct. */
#define ROW(name, INIT)                                                                            \
    {                                                                                              \
        (int (*)(void *, size_t))(void (*)(void)) name##_init_sized, &(const name)INIT,            \
            sizeof(name)                                                                           \
    }
static const struct {
    int (*init)(void *out, size_t struct_size);
    const void *expected;
    size_t size;
} init_rows[] = {
    ROW(stoker_array, STOKER_ARRAY_INIT),
    ROW(stoker_arrays_options, STOKER_ARRAYS_OPTIONS_INIT),
    ROW(stoker_batch, STOKER_BATCH_INIT),
    ROW(stoker_dataset_options, STOKER_DATASET_OPTIONS_INIT),
    ROW(stoker_field_options, STOKER_FIELD_OPTIONS_INIT),
    ROW(stoker_files, STOKER_FILES_INIT),
    ROW(stoker_loader_options, STOKER_LOADER_OPTIONS_INIT),
    ROW(stoker_mix, STOKER_MIX_INIT),
    ROW(stoker_order, STOKER_ORDER_INIT),
    ROW(stoker_packing, STOKER_PACKING_INIT),
    ROW(stoker_ranks, STOKER_RANKS_INIT),
    ROW(stoker_split, STOKER_SPLIT_INIT),
    ROW(stoker_stats, STOKER_STATS_INIT),
    ROW(stoker_trace, STOKER_TRACE_INIT),
};
#undef ROW

CleanTest(options, init_sized_sets_what_the_macro_sets)
{
    static const size_t refused[] = { 0, sizeof(size_t), STK_STRUCT_BYTES_MAX + 1, SIZE_MAX };
    static max_align_t memory[STK_STRUCT_BYTES_MAX / sizeof(max_align_t)];
    uint8_t *const bytes = (uint8_t *)memory;
    for (size_t i = 0; i < sizeof(init_rows) / sizeof(init_rows[0]); i++) {
        memset(bytes, 0xA5, sizeof(memory));
        cr_assert_eq(init_rows[i].init(bytes, init_rows[i].size), STOKER_OK);
        cr_assert_arr_eq(bytes, init_rows[i].expected, init_rows[i].size);
        cr_assert_eq(bytes[init_rows[i].size], 0xA5);
        /* a struct of a later version */
        cr_assert_eq(init_rows[i].init(bytes, init_rows[i].size + 24), STOKER_OK);
        cr_assert_eq(((const size_t *)memory)[0], init_rows[i].size + 24);
        for (size_t at = 0; at < 24; at++)
            cr_assert_eq(bytes[init_rows[i].size + at], 0);
        cr_assert_eq(bytes[init_rows[i].size + 24], 0xA5);
        cr_assert_eq(init_rows[i].init(NULL, init_rows[i].size), STOKER_EINVAL);
        for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++) {
            memset(bytes, 0xA5, sizeof(memory));
            cr_assert_eq(init_rows[i].init(bytes, refused[k]), STOKER_EINVAL);
            cr_assert_eq(bytes[0], 0xA5);
        }
    }
}

/* ---- a set as large as numbers go, with many channels ---- */

struct wide {
    stoker_dataset_info info;
};

static int wide_describe(const void *self, stoker_dataset_info *out)
{
    const struct wide *wide = self;
    *out = wide->info;
    return STOKER_OK;
}

static int wide_locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                       stoker_error *error)
{
    (void)self;
    (void)ids;
    (void)error;
    memset(out, 0, count * sizeof(*out));
    return STOKER_OK;
}

static stoker_dataset *create_wide(struct wide *wide)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "wide",
                                            .describe = wide_describe,
                                            .locate = wide_locate };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, wide, NULL), STOKER_OK);
    return dataset;
}

static stoker_dataset *open_wide(struct wide *wide, uint64_t height, uint64_t channels)
{
    wide->info = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                        .count = 100,
                                        .dtype = STOKER_DTYPE_UINT8,
                                        .rank = 3,
                                        .shape = { height, 2, channels },
                                        .is_image = true };
    return create_wide(wide);
}

CleanTest(options, sizes_never_overflow)
{
    struct wide wide;
    for (int bits = 40; bits < 62; bits++)
        for (uint32_t batch_size = 1; batch_size <= 64; batch_size *= 2) {
            stoker_dataset *dataset = open_wide(&wide, UINT64_C(1) << bits, 1);
            stoker_loader *loader = NULL;
            stoker_loader_options options =
                stk_small_options(.batch_size = batch_size, .dtype = STOKER_DTYPE_FLOAT32,
                                  .num_workers = 1, .pin_memory = STOKER_SWITCH_OFF);
            if (bits >= 47) /* below, the kernel may give so much address space */
                cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_ENOMEM,
                             "2^%d bytes x %u", bits + 1, batch_size);
            cr_assert_null(loader);
            stoker_dataset_close(&dataset);
        }
}

/* No order is known of more, and the set's maker may say any number. */
CleanTest(options, more_samples_than_have_an_order)
{
    struct wide wide;
    static const uint64_t counts[] = { (UINT64_C(1) << 62) + 1, UINT64_MAX };
    stoker_dataset *dataset = open_wide(&wide, 2, 1);
    stoker_dataset_close(&dataset);
    for (size_t i = 0; i < 2; i++) {
        wide.info.count = counts[i];
        dataset = create_wide(&wide);
        refuse(dataset, stk_small_options(), STOKER_ELIMIT, "samples");
        stoker_dataset_close(&dataset);
    }
    wide.info.count = UINT64_C(1) << 62;
    dataset = create_wide(&wide);
    stoker_loader *loader = NULL;
    stoker_loader_options options = stk_small_options(.shuffle = true);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(options, more_channels_than_a_layout_can_have)
{
    struct wide wide;
    stoker_dataset *dataset = open_wide(&wide, 2, STOKER_CHANNELS_MAX + 1);
    REFUSE(layout, STOKER_LAYOUT_NCHW, STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

/* ---- page-locking ---- */

/* In a child without privileges, whose limit is 64 KiB: 0 if all is as promised. */
static int try_pinning(const stoker_dataset *dataset)
{
    const struct rlimit limit = { 65536, 65536 };
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (geteuid() == 0 && setuid(65534) != 0))
        return 77;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { 0 };
    stoker_stats stats = { .struct_size = sizeof(stats) };
    stoker_loader_options options =
        stk_small_options(.prefetch_batches = 64, .pin_memory = STOKER_SWITCH_ON);
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_EPIN || loader != NULL)
        return 1;
    if (error.code != STOKER_EPIN || strstr(error.message, "pin_memory") == NULL ||
        strstr(error.message, "mlock") == NULL)
        return 2;
    options.pin_memory = STOKER_SWITCH_AUTO;
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_OK ||
        stoker_loader_next(loader, &batch, -1) != STOKER_OK)
        return 3;
    if (stoker_loader_stats(loader, &stats) != STOKER_OK || stats.pinned ||
        stats.locked_bytes != 0 || stats.pin_reason[0] != '\0')
        return 4;
    stoker_loader_destroy(&loader);
    options.pin_memory = STOKER_SWITCH_ON;
    options.prefetch_batches = 2; /* what fits is locked */
    options.batch_size = 1;
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_OK ||
        stoker_loader_stats(loader, &stats) != STOKER_OK || !stats.pinned ||
        stats.locked_bytes != stats.slot_bytes || stats.pin_reason[0] != '\0')
        return 5;
    stoker_loader_destroy(&loader);
    options.prefetch_batches = STOKER_PREFETCH_AUTO; /* no more are chosen than may be locked */
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_OK ||
        stoker_loader_stats(loader, &stats) != STOKER_OK || !stats.pinned || stats.slots < 4 ||
        stats.locked_bytes > limit.rlim_cur)
        return 7;
    stoker_loader_destroy(&loader);
    options.pin_memory = STOKER_SWITCH_OFF;
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_OK ||
        stoker_loader_stats(loader, &stats) != STOKER_OK || stats.pinned ||
        stats.pin_reason[0] != '\0')
        return 6;
    stoker_loader_destroy(&loader);
    return 0;
}

/* Without a GPU nothing is copied to one, and page-locked memory is lost to everybody else. */
CleanTest(options, pinning_is_off_by_default_without_a_gpu)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    const stoker_loader_options options = stk_small_options();
    cr_assert_eq(options.pin_memory, STOKER_SWITCH_AUTO);
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=100&shape=7", NULL, NULL), 0);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_not(stats.pinned);
    cr_assert_eq(stats.locked_bytes, 0);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(options, pinning_follows_the_limit_of_the_process)
{
#ifdef STK_TEST_ASAN
    cr_skip_test("a sanitizer's mlock does nothing");
#endif
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=1000");
    const pid_t child = fork();
    if (child == 0)
        _exit(try_pinning(dataset));
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    stoker_dataset_close(&dataset);
    if (WEXITSTATUS(status) == 77)
        cr_skip_test("privileges cannot be dropped here");
    cr_assert_eq(WEXITSTATUS(status), 0);
}
