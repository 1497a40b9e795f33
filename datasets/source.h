/* source.h - one open file of a storage: read it, map it, describe it to the loader. */
#ifndef STK_DATASETS_SOURCE_H
#define STK_DATASETS_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>

#include "loader/base/error.h"
#include "loader/base/io/file_stamp.h"
#include "loader/storage/storage.h"

struct stk_source {
    const char *path;              /* the caller's: its name in the storage */
    const stoker_storage *storage; /* NULL = closed */
    int fd;                        /* -1 = none: the storage reads it */
    uint64_t size;                 /* bytes, when opened */
    uint64_t version;              /* when opened, without a descriptor; 0 = not known */
    struct stk_file_stamp stamp;   /* when opened, with one */
};

#define STK_SOURCE_CLOSED                                                                          \
    {                                                                                              \
        .path = NULL, .fd = -1, .size = 0                                                          \
    }

/* Open a file for reading. Folders, pipes and devices are refused without waiting. path must
 * outlive the source. On failure *source is closed. */
int stk_source_open(struct stk_source *source, const stoker_storage *storage, const char *path,
                    stoker_error *error);
void stk_source_close(struct stk_source *source); /* a closed one is allowed */

/* Read exactly `bytes` bytes from offset. */
int stk_source_read(const struct stk_source *source, void *to, size_t bytes, uint64_t offset,
                    stoker_error *error);

/* Returns true and the first `bytes` bytes if there is such a file and it has as many. */
bool stk_source_begins(const stoker_storage *storage, const char *path, void *to, size_t bytes);

/* Returns STOKER_ECHANGED if it was written to since it was opened, else STOKER_OK. For files
 * that take long to read. */
int stk_source_check(const struct stk_source *source, stoker_error *error);

/* Map all of it, of which *out is the first byte; the caller unmaps it. Errors: STOKER_ENOTSUP
 * (without a descriptor), STOKER_ENOMEM. */
int stk_source_map(const struct stk_source *source, const void **out, stoker_error *error);

/* What file() answers. */
static inline stoker_file stk_source_file(const struct stk_source *source)
{
    return (stoker_file){ .path = source->path,
                          .fd = source->fd,
                          .size = source->size,
                          .storage = source->fd < 0 ? source->storage : NULL,
                          .version = source->version };
}

/* The place of an error in a file. */
static inline struct stk_place stk_at(const char *path, uint64_t offset)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.offset = offset;
    return place;
}

#endif
