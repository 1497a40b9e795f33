/* dataset_input.h - what the data set fuzzers share: an input as a file, and looking at
 * a data set that opened. A broken promise aborts.
 */
#ifndef STK_FUZZ_DATASET_INPUT_H
#define STK_FUZZ_DATASET_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/base/fault.h"
#include "support/sets/read_row.h"

enum { STK_FUZZ_MEMORY_BYTES = 1 << 20 };

#define STK_FUZZ_CHECK(condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct stk_fuzz_file {
    int fd;
    char path[32];
};

static inline struct stk_fuzz_file stk_fuzz_file(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = { .fd = memfd_create("stoker-fuzz", MFD_CLOEXEC) };
    STK_FUZZ_CHECK(file.fd >= 0);
    STK_FUZZ_CHECK(pwrite(file.fd, bytes, size, 0) == (ssize_t)size);
    (void)snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

/* Each of the first rows is there, or says why it is not. */
static inline void stk_fuzz_rows(const stoker_dataset *dataset)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    uint8_t *row = row_bytes <= STK_FUZZ_MEMORY_BYTES ? malloc(row_bytes) : NULL;
    for (uint64_t id = 0; row != NULL && id < count && id < 64; id++) {
        stoker_error error = { 0 };
        const int rc = stk_read_row(dataset, id, row, row_bytes, NULL, &error);
        STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    }
    free(row);
}

/* Each field of the first samples is there, or says why it is not. */
static inline void stk_fuzz_fields(const stoker_dataset *dataset)
{
    static uint8_t room[STK_FUZZ_MEMORY_BYTES];
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    for (uint64_t id = 0; id < info->count && id < 16; id++) {
        stoker_row rows[STOKER_FIELDS_MAX] = { 0 };
        stoker_error error = { 0 };
        for (uint32_t f = 0; f < info->field_count; f++)
            if (stoker_dataset_field_bytes(dataset, f) <= sizeof(room))
                rows[f] = (stoker_row){ .data = room,
                                        .bytes_max = stoker_dataset_field_bytes(dataset, f) };
        const int rc = stoker_dataset_read(dataset, id, rows, &error);
        STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    }
}

/* Open the spec. What does not open must say why, and nothing may be left behind; what opens is
 * given to look_at. */
static inline void stk_fuzz_open(const char *spec, void (*look_at)(const stoker_dataset *dataset))
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = STK_FUZZ_MEMORY_BYTES };
    const int rc = stoker_dataset_open(&dataset, spec, &options, &error);
    STK_FUZZ_CHECK((rc == STOKER_OK) == (dataset != NULL));
    STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    if (dataset != NULL)
        look_at(dataset);
    stoker_dataset_close(&dataset);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
}

/* Both ends of it can be read, and no more. */
static inline void stk_fuzz_ends(const stoker_dataset *dataset)
{
    stoker_error error = { 0 };
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    uint8_t *row = row_bytes <= STK_FUZZ_MEMORY_BYTES ? malloc(row_bytes) : NULL;
    if (row == NULL)
        return;
    STK_FUZZ_CHECK(stk_read_row(dataset, 0, row, row_bytes, NULL, &error) == 0);
    STK_FUZZ_CHECK(stk_read_row(dataset, count - 1, row, row_bytes, NULL, &error) == 0);
    STK_FUZZ_CHECK(stk_read_row(dataset, count, row, row_bytes, NULL, &error) < 0);
    free(row);
}

/* For sets that have no bad samples: what opens must read at both ends. */
static inline void stk_fuzz_dataset(const char *spec)
{
    stk_fuzz_open(spec, stk_fuzz_ends);
}

#endif
