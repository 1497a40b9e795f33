/* array_files.h - data sets of whole arrays, a file of rows and perhaps one of labels: opened from
 * memory, cut off, and with each bit flipped in its turn.
 */
#ifndef STK_TEST_ARRAY_FILES_H
#define STK_TEST_ARRAY_FILES_H

#include <stoker/stoker.h>

#include "dataset_files.h"
#include "support/sets/read_row.h"
#include "support/sweep.h"

/* Open "FORMAT:ROWS", or "FORMAT:ROWS,LABELS" if there are any. */
static inline int stk_arrays_open(stoker_dataset **out, const char *format,
                                  const struct stk_bytes *rows, const struct stk_bytes *labels,
                                  stoker_error *error)
{
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = 1 << 20 };
    struct stk_memory_file row_file = stk_memory_file(rows->at, rows->size);
    struct stk_memory_file label_file = { .fd = -1 };
    char spec[128];
    int length = snprintf(spec, sizeof(spec), "%s:%s", format, row_file.path);
    if (labels != NULL) {
        label_file = stk_memory_file(labels->at, labels->size);
        (void)snprintf(spec + length, sizeof(spec) - (size_t)length, ",%s", label_file.path);
    }
    const int rc = stoker_dataset_open(out, spec, &options, error);
    close(row_file.fd);
    if (label_file.fd >= 0)
        close(label_file.fd);
    return rc;
}

/* Whatever opens must fit its file, and each sample must read. */
static inline void stk_arrays_check_read(stoker_dataset *dataset, size_t file_bytes)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    cr_assert_leq(info->count * row_bytes, file_bytes);
    uint8_t *row = malloc(row_bytes);
    for (uint64_t id = 0; id < info->count; id++)
        cr_assert_eq(stk_read_row(dataset, id, row, row_bytes, NULL, NULL), STOKER_OK);
    free(row);
}

static inline void stk_arrays_check_prefixes(const char *format, const struct stk_bytes *whole)
{
    for (size_t size = 0; size < whole->size; size++) {
        struct stk_bytes cut = *whole;
        cut.size = size;
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        cr_assert_eq(stk_arrays_open(&dataset, format, &cut, NULL, &error), STOKER_ETRUNCATED,
                     "%zu", size);
        cr_assert_eq(error.offset, size);
        cr_assert_null(dataset);
    }
}

/* Flip each bit: an error, or a set of as many samples. Returns how many opened. */
static inline unsigned stk_arrays_flip_bits(const char *format, const struct stk_bytes *rows,
                                            const struct stk_bytes *labels, uint64_t count,
                                            size_t row_bytes)
{
    unsigned opened = 0;
    for (size_t bit = 0; bit < (rows->size + labels->size) * 8; bit++) {
        struct stk_bytes flipped[2] = { *rows, *labels };
        const size_t at = bit / 8;
        struct stk_bytes *victim = at < rows->size ? &flipped[0] : &flipped[1];
        victim->at[at < rows->size ? at : at - rows->size] ^= (uint8_t)(1U << (bit % 8));
        stoker_dataset *dataset = NULL;
        const int rc = stk_arrays_open(&dataset, format, &flipped[0], &flipped[1], NULL);
        cr_assert_eq(rc == STOKER_OK, dataset != NULL);
        if (rc != STOKER_OK)
            continue;
        opened++;
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, count);
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), row_bytes);
        stk_arrays_check_read(dataset, rows->size);
        stoker_dataset_close(&dataset);
    }
    return opened;
}

/* Fail the 1st, 2nd, ... allocation until the files open. Returns which was never reached. */
static inline uint64_t stk_arrays_fail_allocations(const char *format, const struct stk_bytes *rows,
                                                   const struct stk_bytes *labels)
{
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_ANY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_arrays_open(&dataset, format, rows, labels, &sweep.error);
    stoker_dataset_close(&dataset);
    return sweep.nth;
}

#endif
