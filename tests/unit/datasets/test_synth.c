/* test_synth.c - generated sets: the bytes are those promised, anywhere and for ever.
 *
 * Method: rows of synth:bytes against the formula of its header; rows of synth:digits
 * and synth:pictures against sums noted down once; and a classifier of class means, which must
 * find digits easier than chance and harder than nothing.
 */
#include "datasets/synth/bytes.h"
#include "support/files/dataset_files.h"
#include "support/sets/label_of.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"
#include "support/sweep.h"

static stoker_dataset *open_spec(const char *spec, const char *split)
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    const stoker_dataset_options options = { STOKER_DATASET_OPTIONS_DEFAULTS.split = split };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_OK, "%s: %s", spec,
                 error.message);
    return dataset;
}

/* ---- synth:bytes ---------------------------------------------------------------- */

CleanTest(synth, bytes_identify_their_sample)
{
    static const uint64_t ids[] = { 0, 1, 255, 256, 999999999999U };
    for (uint32_t length = 1; length <= 33; length++) {
        char spec[128];
        (void)snprintf(spec, sizeof(spec), "synth:bytes?count=1000000000000&shape=%u&classes=7",
                       length);
        stoker_dataset *dataset = open_spec(spec, NULL);
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), length);
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
            uint8_t row[40];
            memset(row, 0xEE, sizeof(row));
            stoker_label label;
            cr_assert_eq(stk_read_row(dataset, ids[i], row, length, &label, NULL), 0);
            cr_assert_eq(label.index, (int64_t)(ids[i] % 7));
            for (uint32_t at = 0; at < length; at++)
                cr_assert_eq(row[at], stk_synth_byte(ids[i], at));
            cr_assert_eq(row[length], 0xEE, "the row's end was passed");
            if (length >= 8)
                cr_assert_eq(stk_load_le64(row), ids[i]);
        }
        stoker_dataset_close(&dataset);
    }
}

CleanTest(synth, bytes_take_the_shape_asked_for)
{
    static const struct {
        const char *spec;
        uint64_t count;
        stoker_dtype dtype;
        uint32_t rank;
        uint64_t shape[3];
        size_t row_bytes;
        bool is_image;
    } rows[] = {
        { "synth:bytes", 60000, STOKER_DTYPE_UINT8, 2, { 28, 28 }, 784, false },
        { "synth:bytes?shape=28x28x1", 60000, STOKER_DTYPE_UINT8, 3, { 28, 28, 1 }, 784, true },
        { "synth:bytes?shape=2x3x5", 60000, STOKER_DTYPE_UINT8, 3, { 2, 3, 5 }, 30, false },
        { "synth:bytes?dtype=float64&count=3&shape=7",
          3,
          STOKER_DTYPE_FLOAT64,
          1,
          { 7 },
          56,
          false },
        { "synth:bytes?shape=1073741824",
          60000,
          STOKER_DTYPE_UINT8,
          1,
          { 1 << 30 },
          1 << 30,
          false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_dataset *dataset = open_spec(rows[i].spec, NULL);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->count, rows[i].count);
        cr_assert_eq(info->dtype, rows[i].dtype);
        cr_assert_eq(info->rank, rows[i].rank);
        cr_assert_arr_eq(info->shape, rows[i].shape, rows[i].rank * sizeof(uint64_t));
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), rows[i].row_bytes);
        cr_assert_eq(info->is_image, rows[i].is_image);
        cr_assert_eq(info->file_count, 0);
        cr_assert_eq(info->class_count, 10);
        stoker_dataset_close(&dataset);
    }
}

/* ---- specs ---------------------------------------------------------------------- */

CleanTest(synth, what_is_wrong_in_a_spec_is_named)
{
    static const struct stk_refused_spec rows[] = {
        { "synth:", NULL, STOKER_ESPEC, "digits, pictures and bytes" },
        { "synth:digit", NULL, STOKER_ESPEC, "digits, pictures and bytes" },
        { "synth:letters?count=1", NULL, STOKER_ESPEC, "letters" },
        { "synth:digits?cuont=1", NULL, STOKER_ESPEC, "cuont" },
        { "synth:digits?count", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?count=", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?count=1e6", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?count=-1", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?count= 1", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?count=1&count=1", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?count=0", NULL, STOKER_EINVAL, "count" },
        { "synth:digits?count=1000000000001", NULL, STOKER_ELIMIT, "count" },
        { "synth:digits?count=18446744073709551615", NULL, STOKER_ELIMIT, "count" },
        { "synth:digits?count=18446744073709551616", NULL, STOKER_ESPEC, "count" },
        { "synth:digits?size=7", NULL, STOKER_EINVAL, "size" },
        { "synth:digits?size=257", NULL, STOKER_ELIMIT, "size" },
        { "synth:pictures?size=15", NULL, STOKER_EINVAL, "size" },
        { "synth:pictures?size=4097", NULL, STOKER_ELIMIT, "size" },
        { "synth:pictures", "validation", STOKER_EINVAL, "validation" },
        { "synth:digits", "validation", STOKER_EINVAL, "validation" },
        { "synth:bytes", "train", STOKER_EINVAL, "train" },
        { "synth:bytes?shape=", NULL, STOKER_ESPEC, "shape" },
        { "synth:bytes?shape=28x", NULL, STOKER_ESPEC, "shape" },
        { "synth:bytes?shape=x28", NULL, STOKER_ESPEC, "shape" },
        { "synth:bytes?shape=28x0", NULL, STOKER_ESPEC, "shape" },
        { "synth:bytes?shape=1x1x1x1x1x1x1x1", NULL, STOKER_ELIMIT, "shape" },
        { "synth:bytes?shape=1073741825", NULL, STOKER_ELIMIT, "shape" },
        { "synth:bytes?shape=4294967296x4294967296x2", NULL, STOKER_ELIMIT, "shape" },
        { "synth:bytes?dtype=uint9", NULL, STOKER_ESPEC, "dtype" },
        { "synth:bytes?dtype=none", NULL, STOKER_ESPEC, "dtype" },
        { "synth:bytes?classes=0", NULL, STOKER_EINVAL, "classes" },
        { "synth:bytes?classes=65537", NULL, STOKER_EINVAL, "classes" },
        { "synth:bytes?&count=1", NULL, STOKER_ESPEC, "key=value" },
        { "synth:bytes?=1", NULL, STOKER_ESPEC, "no such parameter" },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

CleanTest(synth, an_overlong_parameter_is_refused)
{
    char spec[600];
    stoker_dataset *dataset = NULL;
    for (size_t key = 1; key < 200; key += 33) {
        (void)snprintf(spec, sizeof(spec), "synth:bytes?%0*d=%0*d", (int)key, 0, 300, 1);
        cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_ESPEC);
    }
}

CleanTest(synth, each_allocation_may_fail)
{
    static const char *const specs[] = { "synth:digits", "synth:pictures", "synth:bytes" };
    for (int i = 0; i < 3; i++) {
        stoker_dataset *dataset = NULL;
        struct stk_sweep sweep = { .kinds = STK_FAULT_ANY };
        while (stk_sweep_next(&sweep))
            sweep.rc = stoker_dataset_open(&dataset, specs[i], NULL, &sweep.error);
        stoker_dataset_close(&dataset);
    }
}

/* ---- synth:digits --------------------------------------------------------------- */

enum { PIXELS = 784 };

static uint64_t hash_of(const char *spec, const char *split)
{
    stoker_dataset *dataset = open_spec(spec, split);
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    uint8_t *row = malloc(row_bytes);
    uint64_t hash = STK_FNV1A_START;
    for (uint64_t id = 0; id < stoker_dataset_get_info(dataset)->count; id++) {
        stoker_label label;
        cr_assert_eq(stk_read_row(dataset, id, row, row_bytes, &label, NULL), STOKER_OK);
        hash = stk_fnv1a(hash, row, row_bytes);
        hash = stk_fnv1a(hash, &(uint8_t){ (uint8_t)label.index }, 1);
    }
    free(row);
    stoker_dataset_close(&dataset);
    return hash;
}

/* These sums were noted when the set was made. A change here is a change of everybody's
 * data, and must be meant. */
CleanTest(synth, digits_are_the_same_bytes_everywhere)
{
    static const struct {
        const char *spec;
        const char *split;
        uint64_t hash;
    } rows[] = {
        { "synth:digits?count=1000", NULL, UINT64_C(0x7CBF84435AE089CA) },
        { "synth:digits?count=1000", "test", UINT64_C(0x129D26C7F1858F84) },
        { "synth:digits?count=1000&seed=1", NULL, UINT64_C(0x8FA6444FF90C24C0) },
        { "synth:digits?count=100&size=8", NULL, UINT64_C(0x5E99E98E4BE8A8B3) },
        { "synth:digits?count=100&size=33", NULL, UINT64_C(0xF81FFA900825634C) },
        { "synth:digits?count=20&size=256", NULL, UINT64_C(0x41CE27A7CD99CB4A) },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t hash = hash_of(rows[i].spec, rows[i].split);
        cr_assert_eq(hash, rows[i].hash, "%s %s: 0x%016llX", rows[i].spec,
                     rows[i].split != NULL ? rows[i].split : "", (unsigned long long)hash);
    }
    cr_assert_eq(hash_of("synth:digits?count=1000", "train"), rows[0].hash);
}

CleanTest(synth, digits_do_not_depend_on_count_and_have_no_end)
{
    stoker_dataset *few = open_spec("synth:digits?count=10", NULL);
    stoker_dataset *many = open_spec("synth:digits?count=1000000000000", NULL);
    uint8_t one[PIXELS];
    uint8_t other[PIXELS];
    for (uint64_t id = 0; id < 10; id++) {
        cr_assert_eq(stk_read_row(few, id, one, PIXELS, NULL, NULL), STOKER_OK);
        cr_assert_eq(stk_read_row(many, id, other, PIXELS, NULL, NULL), STOKER_OK);
        cr_assert_arr_eq(one, other, PIXELS);
    }
    cr_assert_eq(stk_read_row(many, 999999999999U, one, PIXELS, NULL, NULL), STOKER_OK);
    cr_assert_eq(stk_read_row(many, 1000000000000U, one, PIXELS, NULL, NULL), STOKER_EINVAL);
    stoker_dataset_close(&few);
    stoker_dataset_close(&many);
}

CleanTest(synth, every_size_stays_within_its_row)
{
    for (unsigned size = 8; size <= 256; size += size < 40 ? 1 : 27) {
        char spec[64];
        (void)snprintf(spec, sizeof(spec), "synth:digits?size=%u", size);
        stoker_dataset *dataset = open_spec(spec, NULL);
        const size_t bytes = (size_t)size * size;
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), bytes);
        uint8_t *row = malloc(bytes + 16);
        for (uint64_t id = 0; id < 40; id++) {
            memset(row, 0xEE, bytes + 16);
            cr_assert_eq(stk_read_row(dataset, id, row, bytes, NULL, NULL), STOKER_OK);
            for (size_t i = 0; i < 16; i++)
                cr_assert_eq(row[bytes + i], 0xEE);
            size_t bright = 0;
            for (size_t i = 0; i < bytes; i++)
                bright += row[i] > 100;
            cr_assert(bright * 50 > bytes && bright * 2 < bytes, "size %u id %d: %zu", size,
                      (int)id, bright);
        }
        free(row);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(synth, digits_come_about_equally_often)
{
    stoker_dataset *dataset = open_spec("synth:digits?count=100000", NULL);
    unsigned seen[10] = { 0 };
    for (uint64_t id = 0; id < 100000; id++) {
        const int64_t label = stk_label_of(dataset, id);
        cr_assert(label >= 0 && label < 10);
        seen[label]++;
    }
    for (int digit = 0; digit < 10; digit++) /* 4 standard deviations are 380 */
        cr_assert(seen[digit] > 9620 && seen[digit] < 10380, "%d: %u", digit, seen[digit]);
    stoker_dataset_close(&dataset);
}

/* Squared distance of a row to the mean of a class. */
static double away(const uint8_t *row, const double *mean)
{
    double sum = 0;
    for (int i = 0; i < PIXELS; i++)
        sum += (row[i] - mean[i]) * (row[i] - mean[i]);
    return sum;
}

CleanTest(synth, digits_can_be_learnt_but_not_at_a_glance)
{
    enum { TRAIN = 3000, TEST = 1000 };
    static double means[10][PIXELS];
    unsigned seen[10] = { 0 };
    uint8_t row[PIXELS];
    stoker_label label;
    stoker_dataset *train = open_spec("synth:digits", "train");
    for (uint64_t id = 0; id < TRAIN; id++) {
        cr_assert_eq(stk_read_row(train, id, row, PIXELS, &label, NULL), STOKER_OK);
        seen[label.index]++;
        for (int i = 0; i < PIXELS; i++)
            means[label.index][i] += row[i];
    }
    for (int digit = 0; digit < 10; digit++)
        for (int i = 0; i < PIXELS; i++)
            means[digit][i] /= seen[digit];
    stoker_dataset *test = open_spec("synth:digits", "test");
    unsigned right = 0;
    for (uint64_t id = 0; id < TEST; id++) {
        cr_assert_eq(stk_read_row(test, id, row, PIXELS, &label, NULL), STOKER_OK);
        int best = 0;
        for (int digit = 1; digit < 10; digit++)
            if (away(row, means[digit]) < away(row, means[best]))
                best = digit;
        right += best == label.index;
    }
    cr_assert(right > TEST * 60 / 100 && right < TEST * 97 / 100, "%u of %d are right", right,
              TEST);
    stoker_dataset_close(&train);
    stoker_dataset_close(&test);
}

/* ---- synth:pictures ------------------------------------------------------------- */

/* As for digits: a change here is a change of everybody's data. */
CleanTest(synth, pictures_are_the_same_bytes_everywhere)
{
    static const struct {
        const char *spec;
        const char *split;
        uint64_t hash;
    } rows[] = {
        { "synth:pictures?count=20", NULL, UINT64_C(0x7EC5EE300219094A) },
        { "synth:pictures?count=20", "test", UINT64_C(0x9E2FF919EE723FD4) },
        { "synth:pictures?count=20&seed=1", NULL, UINT64_C(0x687265C297E7C4ED) },
        { "synth:pictures?count=100&size=16", NULL, UINT64_C(0xE22F847959E9C1C3) },
        { "synth:pictures?count=20&size=97", NULL, UINT64_C(0xAFDBE9777D372E22) },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t hash = hash_of(rows[i].spec, rows[i].split);
        cr_assert_eq(hash, rows[i].hash, "%s %s: 0x%016llX", rows[i].spec,
                     rows[i].split != NULL ? rows[i].split : "", (unsigned long long)hash);
    }
}

CleanTest(synth, pictures_of_every_size_stay_within_their_row)
{
    for (unsigned size = 16; size <= 300; size += size < 40 ? 1 : 37) {
        char spec[64];
        (void)snprintf(spec, sizeof(spec), "synth:pictures?size=%u", size);
        stoker_dataset *dataset = open_spec(spec, NULL);
        const size_t bytes = (size_t)size * size * 3;
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), bytes);
        uint8_t *row = malloc(bytes + 16);
        for (uint64_t id = 0; id < 10; id++) {
            memset(row, 0xEE, bytes + 16);
            cr_assert_eq(stk_read_row(dataset, id, row, bytes, NULL, NULL), STOKER_OK);
            for (size_t i = 0; i < 16; i++)
                cr_assert_eq(row[bytes + i], 0xEE);
        }
        free(row);
        stoker_dataset_close(&dataset);
    }
}

/* What makes a picture: neighbors are alike, and pixels far from each other are not. */
CleanTest(synth, pictures_are_smooth_nearby_and_varied_afar)
{
    enum { SIDE = 256, LINE = SIDE * 3, BYTES = SIDE * LINE };
    stoker_dataset *dataset = open_spec("synth:pictures", NULL);
    static uint8_t row[BYTES];
    uint64_t near_by = 0;
    uint64_t afar = 0;
    uint64_t pairs = 0;
    for (uint64_t id = 0; id < 10; id++) {
        stoker_label label;
        cr_assert_eq(stk_read_row(dataset, id, row, BYTES, &label, NULL), STOKER_OK);
        cr_assert(label.index >= 0 && label.index <= 9);
        for (int at = 0; at < BYTES / 2; at += 7, pairs++) {
            near_by += (uint64_t)abs(row[at] - row[at + LINE]);
            afar += (uint64_t)abs(row[at] - row[at + SIDE / 2 * LINE]);
        }
    }
    cr_assert_lt(near_by, 8 * pairs, "%f", (double)near_by / (double)pairs);
    cr_assert_gt(afar, 20 * pairs, "%f", (double)afar / (double)pairs);
    stoker_dataset_close(&dataset);
}
