/* fields_of.h - all fields of one sample, read by the data set itself. */
#ifndef STK_TEST_FIELDS_OF_H
#define STK_TEST_FIELDS_OF_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <stoker/stoker.h>

struct stk_fields_of {
    uint32_t count;
    stoker_row rows[STOKER_FIELDS_MAX];
    stoker_error error;
    int rc;
};

static inline struct stk_fields_of stk_fields_read(const stoker_dataset *dataset, uint64_t id)
{
    struct stk_fields_of sample = { .count = stoker_dataset_get_info(dataset)->field_count };
    for (uint32_t f = 0; f < sample.count; f++) {
        const size_t bytes = stoker_dataset_field_bytes(dataset, f);
        sample.rows[f] = (stoker_row){ .data = calloc(bytes, 1), .bytes_max = bytes };
        cr_assert_not_null(sample.rows[f].data);
    }
    sample.rc = stoker_dataset_read(dataset, id, sample.rows, &sample.error);
    return sample;
}

static inline void stk_fields_free(struct stk_fields_of *sample)
{
    for (uint32_t f = 0; f < sample->count; f++)
        free(sample->rows[f].data);
}

/* The varying field `name` of the sample is exactly these entries. */
static inline void stk_fields_check(const stoker_dataset *dataset,
                                    const struct stk_fields_of *sample, const char *name,
                                    const void *wanted, uint64_t entries, size_t bytes)
{
    const int32_t field = stoker_dataset_find_field(dataset, name);
    cr_assert_geq(field, 0, "no field %s", name);
    cr_assert_eq(sample->rc, STOKER_OK, "%s", sample->error.message);
    const stoker_row *row = &sample->rows[field];
    if (stoker_dataset_field(dataset, (uint32_t)field)->varies)
        cr_assert_eq(row->length, entries, "%s: %d entries", name, (int)row->length);
    cr_assert_leq(bytes, row->bytes_max);
    if (bytes > 0)
        cr_assert_arr_eq(row->data, wanted, bytes, "%s", name);
}

#endif
