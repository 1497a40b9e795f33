/* test_verify.c - a fast wrong answer is a failure: each kind of wrong is found.
 *
 * Method: batches made by hand from a data set whose rows and labels are known, then
 * spoilt in one place.
 */
#include "bench/loaderbench/cell/verify.h"
#include "support/leaks.h"

enum { SAMPLES = 100, BYTES = 6, BATCH = 10 };

static void fill_row(uint64_t id, uint8_t *row)
{
    for (int at = 0; at < BYTES; at++)
        row[at] = (uint8_t)(id * 7 + (uint64_t)at);
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self;
    (void)scratch;
    (void)error;
    cr_assert_eq(row_bytes, BYTES);
    fill_row(in->sample, row);
    return STOKER_OK;
}

static const stoker_codec codec = { .struct_size = sizeof(stoker_codec),
                                    .name = "rule",
                                    .decode = decode };

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = SAMPLES,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { BYTES },
                                  .label_dtype = STOKER_DTYPE_INT64 };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    (void)ids;
    (void)error;
    for (uint32_t index = 0; index < count; index++)
        out[index] = (stoker_part){ .codec = &codec };
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)self;
    (void)field;
    for (uint32_t index = 0; index < count; index++)
        ((int64_t *)out)[index] = (int64_t)ids[index] + 1000;
    return STOKER_OK;
}

static const stoker_dataset_ops rule_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                             .name = "rule",
                                             .describe = describe,
                                             .locate = locate,
                                             .values = values };

/* One epoch, delivered batch by batch, in memory that a test may spoil. */
struct epoch {
    stoker_dataset *dataset;
    struct stk_convert_plan plan;
    struct bench_verify verify;
    float rows[SAMPLES][BYTES];
    int64_t labels[SAMPLES];
    uint64_t ids[SAMPLES];
};

static void begin(struct epoch *epoch)
{
    struct stk_convert_options options = { .from = STOKER_DTYPE_UINT8,
                                           .to = STOKER_DTYPE_FLOAT32,
                                           .elements = BYTES,
                                           .channels = 1,
                                           .scale = 1.0f / 255.0f };
    cr_assert_eq(stoker_dataset_create(&epoch->dataset, &rule_ops, NULL, NULL), STOKER_OK);
    cr_assert_eq(stk_convert_plan_init(&epoch->plan, &options), STOKER_OK);
    cr_assert_eq(bench_verify_create(&epoch->verify, epoch->dataset, &epoch->plan, true),
                 STOKER_OK);
    for (uint64_t at = 0; at < SAMPLES; at++) {
        uint8_t stored[BYTES];
        const void *row = stored;
        uint64_t id = (at * 37) % SAMPLES; /* an order that is not 0, 1, 2 */
        fill_row(id, stored);
        stk_convert_rows_reference(&epoch->plan, &row, 1, 0, epoch->rows[at]);
        epoch->ids[at] = id;
        epoch->labels[at] = (int64_t)id + 1000;
    }
}

static bool deliver(struct epoch *epoch)
{
    for (uint32_t first = 0; first < SAMPLES; first += BATCH) {
        stoker_batch batch = {
            .struct_size = sizeof(stoker_batch),
            .images = { .data = epoch->rows[first], .dtype = STOKER_DTYPE_FLOAT32 },
            .labels = { .data = &epoch->labels[first], .dtype = STOKER_DTYPE_INT64 },
            .ids = &epoch->ids[first],
            .count = BATCH,
            .index = first / BATCH
        };
        if (!bench_verify_batch(&epoch->verify, &batch))
            return false;
    }
    return bench_verify_ids(&epoch->verify);
}

static void end(struct epoch *epoch)
{
    bench_verify_destroy(&epoch->verify);
    stoker_dataset_close(&epoch->dataset);
}

CleanTest(bench_verify, a_right_epoch_passes)
{
    struct epoch epoch = { 0 };
    begin(&epoch);
    cr_assert(deliver(&epoch), "%s", epoch.verify.message);
    cr_assert_eq(epoch.verify.checked, SAMPLES);
    cr_assert_eq(epoch.verify.message[0], '\0');
    end(&epoch);
}

CleanTest(bench_verify, every_wrong_element_is_found)
{
    for (uint32_t at = 0; at < SAMPLES; at++)
        for (uint32_t element = 0; element < BYTES; element++) {
            struct epoch epoch = { 0 };
            begin(&epoch);
            uint32_t bits;
            memcpy(&bits, &epoch.rows[at][element], sizeof(bits));
            bits ^= 1; /* the smallest difference there is */
            memcpy(&epoch.rows[at][element], &bits, sizeof(bits));
            cr_assert_not(deliver(&epoch), "row %u element %u", at, element);
            cr_assert_not_null(strstr(epoch.verify.message, "row differs"));
            end(&epoch);
        }
}

CleanTest(bench_verify, a_wrong_label_is_found)
{
    struct epoch epoch = { 0 };
    begin(&epoch);
    epoch.labels[SAMPLES - 1]++;
    cr_assert_not(deliver(&epoch));
    cr_assert_not_null(strstr(epoch.verify.message, "label"));
    end(&epoch);
}

CleanTest(bench_verify, a_sample_that_comes_twice_is_found)
{
    struct epoch epoch = { 0 };
    begin(&epoch);
    epoch.ids[5] = epoch.ids[77]; /* its row and label are right for the id */
    epoch.labels[5] = epoch.labels[77];
    memcpy(epoch.rows[5], epoch.rows[77], sizeof(epoch.rows[5]));
    cr_assert_not(deliver(&epoch));
    cr_assert_not_null(strstr(epoch.verify.message, "twice"));
    end(&epoch);
}

CleanTest(bench_verify, an_id_beyond_the_set_and_a_short_epoch_are_found)
{
    struct epoch epoch = { 0 };
    begin(&epoch);
    epoch.ids[42] = SAMPLES;
    cr_assert_not(deliver(&epoch));
    cr_assert_not_null(strstr(epoch.verify.message, "beyond"));
    end(&epoch);

    struct epoch empty = { 0 };
    begin(&empty);
    cr_assert_not(bench_verify_ids(&empty.verify));
    cr_assert_not_null(strstr(empty.verify.message, "ended after 0 of 100"));
    end(&empty);
}
