/* source.h - a file on disk, opened with care: regular, sized, closed on exec; reading it does not change its time
 * of last access, where the kernel allows that. */
#ifndef STK_DATASETS_SOURCE_H
#define STK_DATASETS_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/error.h"

struct stk_source {
    const char *path;    /* the caller's, for messages */
    int fd;              /* -1 = closed */
    uint64_t size;       /* bytes when opened */
    int64_t modified_ns; /* since 1970: when it had been written to last */
};

#define STK_SOURCE_CLOSED                                                                          \
    {                                                                                              \
        .path = NULL, .fd = -1, .size = 0, .modified_ns = 0                                        \
    }

/* Open path for reading. Directories, pipes and devices are refused, never waited
 * for. path must outlive the source. On failure *source is closed and *error told. */
int stk_source_open(struct stk_source *source, const char *path, stoker_error *error);
void stk_source_close(struct stk_source *source); /* closed already is allowed */

/* Read exactly `bytes` bytes from offset. */
int stk_source_read(const struct stk_source *source, void *to, size_t bytes, uint64_t offset,
                    stoker_error *error);

/* Is it as it was when it was opened, by size and time of the last write? STOKER_OK or STOKER_ECHANGED. For what
 * takes its time to read it. */
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
