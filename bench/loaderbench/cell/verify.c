/* verify.c - see verify.h. */
#include "bench/loaderbench/cell/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bench_verify_create(struct bench_verify *out, const stoker_dataset *dataset,
                        const struct stk_convert_plan *plan, bool rows)
{
    uint64_t count = stoker_dataset_get_info(dataset)->count;
    uint64_t limit = BENCH_VERIFY_BYTES_MAX / plan->from_bytes;
    limit = limit < 1 ? 1 : limit > BENCH_VERIFY_SAMPLES_MAX ? BENCH_VERIFY_SAMPLES_MAX : limit;
    limit = limit < count ? limit : count;

    struct bench_verify verify = { .dataset = dataset, .plan = plan, .rows = rows, .limit = limit };
    verify.ids = calloc(limit, sizeof(verify.ids[0]));
    verify.stored = malloc(plan->from_bytes);
    verify.expected = malloc(plan->to_bytes);
    if (verify.ids == NULL || verify.stored == NULL || verify.expected == NULL) {
        bench_verify_destroy(&verify);
        return STOKER_ENOMEM;
    }
    *out = verify;
    return STOKER_OK;
}

int bench_verify_transformed(struct bench_verify *verify, struct bench_transform *transform)
{
    void *expected = realloc(verify->expected, transform->convert.to_bytes);
    if (expected == NULL)
        return STOKER_ENOMEM;
    verify->expected = expected;
    verify->transform = transform;
    return STOKER_OK;
}

void bench_verify_destroy(struct bench_verify *verify)
{
    free(verify->ids);
    free(verify->stored);
    free(verify->expected);
    verify->ids = NULL;
    verify->stored = NULL;
    verify->expected = NULL;
}

static bool complain(struct bench_verify *verify, const char *what, uint64_t id,
                     const stoker_batch *batch)
{
    snprintf(verify->message, sizeof(verify->message),
             "wrong data: %s (sample %" PRIu64 ", batch %" PRIu64 " of epoch %" PRIu64 ")", what,
             id, batch->index, batch->epoch);
    return false;
}

/* Labels are compared as bits, since a NaN must be delivered, too. */
static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static bool label_is_right(const stoker_batch *batch, uint32_t at, stoker_label label)
{
    switch (batch->labels.dtype) {
    case STOKER_DTYPE_INT64:
        return ((const int64_t *)batch->labels.data)[at] == label.index;
    case STOKER_DTYPE_FLOAT32:
        return bits_of(((const float *)batch->labels.data)[at]) == bits_of(label.value);
    default:
        return batch->labels.data == NULL;
    }
}

/* The expected row. */
static int expect(struct bench_verify *verify, uint64_t epoch, uint64_t id, stoker_label *label)
{
    const struct stk_convert_plan *plan = verify->plan;
    if (verify->transform != NULL)
        return bench_transform_expect(verify->transform, epoch, id, verify->expected, label);
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = verify->stored,
                                             .bytes_max = plan->from_bytes } };
    const int32_t field = stoker_dataset_find_field(verify->dataset, "label");
    if (field >= 0)
        rows[field] = (stoker_row){ .data = label, .bytes_max = sizeof(*label) };
    const int rc = stoker_dataset_read(verify->dataset, id, rows, NULL);
    if (rc == STOKER_OK)
        stk_convert_rows_reference(plan, (const void *const *)&verify->stored, 1, 0,
                                   verify->expected);
    return rc;
}

static bool check_sample(struct bench_verify *verify, const stoker_batch *batch, uint32_t at)
{
    const size_t row_bytes =
        verify->transform != NULL ? verify->transform->convert.to_bytes : verify->plan->to_bytes;
    uint64_t id = batch->ids[at];
    stoker_label label = { 0 };
    if (id >= stoker_dataset_get_info(verify->dataset)->count)
        return complain(verify, "an id beyond the data set", id, batch);
    if (!verify->rows)
        return true;
    int rc = expect(verify, batch->epoch, id, &label);
    if (rc != STOKER_OK)
        return complain(verify, stoker_strerror(rc), id, batch);
    const char *row = (const char *)batch->images.data + (size_t)at * row_bytes;
    if (memcmp(row, verify->expected, row_bytes) != 0)
        return complain(verify, "a row differs from the reference", id, batch);
    return label_is_right(batch, at, label) ||
           complain(verify, "a label differs from the data set's", id, batch);
}

bool bench_verify_batch(struct bench_verify *verify, const stoker_batch *batch)
{
    for (uint32_t at = 0; at < batch->count && verify->checked < verify->limit; at++) {
        if (!check_sample(verify, batch, at))
            return false;
        verify->ids[verify->checked++] = batch->ids[at];
    }
    return true;
}

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

bool bench_verify_ids(struct bench_verify *verify)
{
    if (verify->checked < verify->limit) {
        snprintf(verify->message, sizeof(verify->message),
                 "wrong data: the epoch ended after %" PRIu64 " of %" PRIu64 " samples",
                 verify->checked, verify->limit);
        return false;
    }
    /* limit distinct ids below count: when limit is count, that is every id once */
    qsort(verify->ids, verify->checked, sizeof(verify->ids[0]), compare_ids);
    for (uint64_t index = 1; index < verify->checked; index++)
        if (verify->ids[index] == verify->ids[index - 1]) {
            snprintf(verify->message, sizeof(verify->message),
                     "wrong data: sample %" PRIu64 " came twice in one epoch", verify->ids[index]);
            return false;
        }
    return true;
}
