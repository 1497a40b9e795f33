/* test_resident_rows.c - info.rows is a shorter way to what locate() reports: the
 * batches are the same, and locate() is left alone.
 */
#include "support/leaks.h"
#include "support/sets/resident_set.h"

enum { SAMPLES = 203, ROW = 24 };

static struct stk_resident_set make_set(stoker_dtype label_dtype, bool tells_rows)
{
    return (struct stk_resident_set){
        .count = SAMPLES, .row_bytes = ROW, .label_dtype = label_dtype, .tells_rows = tells_rows
    };
}

static void run_both(struct stk_resident_set *plain, struct stk_resident_set *short_way,
                     const stoker_loader_options *options, bool is_asked)
{
    static struct stk_run expected;
    static struct stk_run found;
    cr_assert_eq(stk_run(plain->dataset, options, &expected), STOKER_FINISHED);
    atomic_store(&short_way->located, 0);
    cr_assert_eq(stk_run(short_way->dataset, options, &found), STOKER_FINISHED);
    cr_assert(stk_runs_equal(&expected, &found), "%d workers, batch size %u", options->num_workers,
              options->batch_size);
    cr_assert_eq(found.samples, 2 * SAMPLES);
    if (is_asked)
        cr_assert_geq(atomic_load(&short_way->located), 2 * SAMPLES);
    else /* once at create, which looks at sample 0 */
        cr_assert_leq(atomic_load(&short_way->located), 1);
}

static void compare(stoker_dtype label_dtype, bool tells_rows, bool is_asked)
{
    static const uint32_t sizes[] = { 1, 7, 64, SAMPLES };
    struct stk_resident_set plain = make_set(label_dtype, false);
    struct stk_resident_set short_way = make_set(label_dtype, tells_rows);
    cr_assert(stk_resident_set_open(&plain));
    cr_assert(stk_resident_set_open(&short_way));
    stoker_loader_options options = stk_small_options();
    for (options.num_workers = 0; options.num_workers <= 3; options.num_workers++)
        for (int i = 0; i < 8; i++) {
            options.batch_size = sizes[i / 2];
            options.dtype = i % 2 == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT32;
            options.shuffle = i % 3 != 0;
            run_both(&plain, &short_way, &options, is_asked);
        }
    stk_resident_set_close(&plain);
    stk_resident_set_close(&short_way);
}

CleanTest(resident_rows, are_what_locate_reports)
{
    compare(STOKER_DTYPE_INT64, true, false);
    compare(STOKER_DTYPE_FLOAT32, true, false);
    compare(STOKER_DTYPE_NONE, true, false);
}

CleanTest(resident_rows, that_are_not_announced_are_located)
{
    compare(STOKER_DTYPE_INT64, false, true);
}

static int describe_too_many(const void *self, stoker_dataset_info *out)
{
    const int rc = stk_resident_describe(self, out);
    out->count = UINT64_MAX / ROW + 1;
    return rc;
}

CleanTest(resident_rows, must_fit_into_memory)
{
    for (int tells = 0; tells <= 1; tells++) {
        struct stk_resident_set set = make_set(STOKER_DTYPE_INT64, tells == 1);
        stoker_dataset *dataset = NULL;
        cr_assert(stk_resident_set_open(&set));
        stoker_dataset_ops ops = set.ops;
        ops.describe = describe_too_many;
        cr_assert_eq(stoker_dataset_create(&dataset, &ops, &set, NULL),
                     tells == 1 ? STOKER_EINVAL : STOKER_OK);
        cr_assert_eq(dataset == NULL, tells == 1);
        stoker_dataset_close(&dataset);
        stk_resident_set_close(&set);
    }
}
