/* read_row.h - read field 0 of a sample and its label. */
#ifndef STK_TEST_READ_ROW_H
#define STK_TEST_READ_ROW_H

#include <stddef.h>
#include <stoker/dataset.h>

/* label: NULL = not wanted; stays as it is on failure, or if the data set has none. */
static inline int stk_read_row(const stoker_dataset *dataset, uint64_t id, void *row,
                               size_t row_bytes, stoker_label *label, stoker_error *error)
{
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row, .bytes_max = row_bytes } };
    stoker_label found = { .index = 0 };
    const int32_t field = stoker_dataset_find_field(dataset, "label");
    if (field >= 0 && label != NULL)
        rows[field] = (stoker_row){ .data = &found, .bytes_max = sizeof(found) };
    const int rc = stoker_dataset_read(dataset, id, rows, error);
    if (rc == STOKER_OK && field >= 0 && label != NULL)
        *label = found;
    return rc;
}

#endif
