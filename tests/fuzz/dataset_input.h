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

/* Open the spec. What opens must read at both ends; what does not must say why. Either
 * way nothing may be left behind. */
static inline void stk_fuzz_dataset(const char *spec)
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    const stoker_dataset_options options = { .max_bytes = STK_FUZZ_MEMORY_BYTES, .error = &error };
    int rc = stoker_dataset_open(&dataset, spec, &options);
    STK_FUZZ_CHECK((rc == STOKER_OK) == (dataset != NULL));
    STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    if (dataset != NULL && stoker_dataset_row_bytes(dataset) <= STK_FUZZ_MEMORY_BYTES) {
        const size_t row_bytes = stoker_dataset_row_bytes(dataset);
        const uint64_t count = stoker_dataset_get_info(dataset)->count;
        uint8_t *row = malloc(row_bytes);
        STK_FUZZ_CHECK(row != NULL);
        STK_FUZZ_CHECK(stoker_dataset_read(dataset, 0, row, row_bytes, NULL, &error) == 0);
        STK_FUZZ_CHECK(stoker_dataset_read(dataset, count - 1, row, row_bytes, NULL, &error) == 0);
        STK_FUZZ_CHECK(stoker_dataset_read(dataset, count, row, row_bytes, NULL, &error) < 0);
        free(row);
    }
    stoker_dataset_close(&dataset);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
}

#endif
