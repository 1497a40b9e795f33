/* file_stamp.h - notices that a file may have been written to since an earlier fstat().
 *
 *   size or mtime differ                          written to
 *   ctime differs, all else is the same           written to, and mtime set back: ctime cannot be set
 *   ctime differs, and links, owner or mode, too  chmod, chown, a link made or removed, another file
 *                                                 renamed over it: these set ctime as well, so it
 *                                                 proves nothing
 */
#ifndef STK_BASE_FILE_STAMP_H
#define STK_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "loader/base/clock.h"

struct stk_file_stamp {
    uint64_t size;
    int64_t modified_ns, changed_ns; /* mtime and ctime, since 1970 */
    uint64_t links;
    uint32_t mode, owner, group;
};

static inline struct stk_file_stamp stk_file_stamp_of(const struct stat *status)
{
    return (struct stk_file_stamp){ .size = (uint64_t)status->st_size,
                                    .modified_ns = stk_timespec_ns(status->st_mtim),
                                    .changed_ns = stk_timespec_ns(status->st_ctim),
                                    .links = status->st_nlink,
                                    .mode = status->st_mode,
                                    .owner = status->st_uid,
                                    .group = status->st_gid };
}

/* Returns true if nothing shows that the file was written to between the two stamps. */
static inline bool stk_file_stamp_holds(const struct stk_file_stamp *then,
                                        const struct stk_file_stamp *now)
{
    return now->size == then->size && now->modified_ns == then->modified_ns &&
           (now->changed_ns == then->changed_ns || now->links != then->links ||
            now->mode != then->mode || now->owner != then->owner || now->group != then->group);
}

#endif
