/* reader_file.h - a file whose every byte is known, and one read after the other from it. */
#ifndef STK_TEST_READER_FILE_H
#define STK_TEST_READER_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <stoker/reader.h>

#include "loader/base/rng.h"

/* Neighbors differ, and so do the bytes a page or a power of two apart. */
static inline uint8_t stk_test_byte(uint64_t offset)
{
    return (uint8_t)(stk_mix64(offset) >> 32);
}

/* A nameless file of `bytes` such bytes, or NULL. Close with fclose. */
static inline FILE *stk_test_file(uint64_t bytes)
{
    FILE *file = tmpfile();
    if (file == NULL)
        return NULL;
    for (uint64_t at = 0; at < bytes; at++)
        if (putc(stk_test_byte(at), file) == EOF) {
            fclose(file);
            return NULL;
        }
    if (fflush(file) != 0) {
        fclose(file);
        return NULL;
    }
    return file;
}

/* What a whole read of `bytes` at `offset` gives in a file of `file_bytes`. */
static inline int64_t stk_test_expected(uint64_t file_bytes, uint64_t offset, uint64_t bytes)
{
    if (offset >= file_bytes)
        return 0;
    const uint64_t left = file_bytes - offset;
    return (int64_t)(left < bytes ? left : bytes);
}

/* Returns true if the first `count` bytes at `buffer` equal the file's at `offset`. */
static inline bool stk_test_bytes_match(const void *buffer, uint64_t offset, int64_t count)
{
    const uint8_t *bytes = buffer;
    for (int64_t i = 0; i < count; i++)
        if (bytes[i] != stk_test_byte(offset + (uint64_t)i))
            return false;
    return true;
}

/* Returns true if this system has the reader at all (io_uring may be disabled). */
static inline bool stk_test_reader_works(const stoker_reader *reader)
{
    const stoker_reader_setup setup = { .depth = 1 };
    void *ring = NULL;
    return reader->open(reader->self, &ring, &setup, NULL) == 0 && reader->close(ring, 0) == 0;
}

#endif
