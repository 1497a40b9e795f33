/* setup.h - checks a reader's setup; limits that all readers share. */
#ifndef STK_READER_SETUP_H
#define STK_READER_SETUP_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/reader.h>

#include "loader/base/error.h"

enum {
    STK_READ_DEPTH_MAX = 1024,
    /* A longer read ends short: the kernel's results have 32 bits. */
    STK_READ_BYTES_MAX = 1 << 30,
    /* Bytes copied from the page cache before they are handed out: few enough to be still in the
     * core's own cache when they are summed, decoded or converted. */
    STK_READ_GROUP_BYTES = 128 << 10
};

static inline uint32_t stk_read_bytes(const stoker_read *read)
{
    return read->bytes < STK_READ_BYTES_MAX ? (uint32_t)read->bytes : STK_READ_BYTES_MAX;
}

/* Returns 0 or STOKER_EINVAL. */
static inline int stk_reader_setup_check(const stoker_reader_setup *setup, stoker_error *error)
{
    const struct stk_place place = STK_NOWHERE;
    if (setup == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "reader: no setup");
    if (setup->depth < 1 || setup->depth > STK_READ_DEPTH_MAX)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "reader: depth %u is not in 1..%d", setup->depth, STK_READ_DEPTH_MAX);
    if (setup->file_count > 0 && setup->files == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "reader: %u files at no address", setup->file_count);
    return 0;
}

#endif
