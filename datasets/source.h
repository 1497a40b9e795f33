/* source.h - open a regular file for reading, close-on-exec and, if the kernel allows it, without
 * updating its time of last access. */
#ifndef STK_DATASETS_SOURCE_H
#define STK_DATASETS_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/error.h"
#include "loader/base/io/file_stamp.h"

struct stk_source {
    const char *path;            /* the caller's, for messages */
    int fd;                      /* -1 = closed */
    uint64_t size;               /* bytes, when opened */
    struct stk_file_stamp stamp; /* when opened */
};

#define STK_SOURCE_CLOSED                                                                          \
    {                                                                                              \
        .path = NULL, .fd = -1, .size = 0                                                          \
    }

/* Open path for reading. Directories, pipes and devices are refused without waiting. path must
 * outlive the source. On failure *source is closed. */
int stk_source_open(struct stk_source *source, const char *path, stoker_error *error);
void stk_source_close(struct stk_source *source); /* a closed one is allowed */

/* Read exactly `bytes` bytes from offset. */
int stk_source_read(const struct stk_source *source, void *to, size_t bytes, uint64_t offset,
                    stoker_error *error);

/* Returns STOKER_ECHANGED if it was written to since it was opened, else STOKER_OK. For files
 * that take long to read. */
int stk_source_check(const struct stk_source *source, stoker_error *error);

/* The place of an error in a file. */
static inline struct stk_place stk_at(const char *path, uint64_t offset)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.offset = offset;
    return place;
}

#endif
