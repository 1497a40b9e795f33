/* label_of.h - the label of one sample, without its other fields. */
#ifndef STK_TEST_LABEL_OF_H
#define STK_TEST_LABEL_OF_H

#include <criterion/criterion.h>
#include <stoker/stoker.h>

static inline int64_t stk_label_of(const stoker_dataset *dataset, uint64_t id)
{
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = NULL } };
    int64_t label = -1;
    rows[stoker_dataset_find_field(dataset, "label")] =
        (stoker_row){ .data = &label, .bytes_max = sizeof(label) };
    cr_assert_eq(stoker_dataset_read(dataset, id, rows, NULL), STOKER_OK);
    return label;
}

#endif
