/* storage.h - one interface below every format: list, look at, open and read named objects.
 *
 *   format ──▶ storage.c ──┬─▶ local.c     paths: a descriptor stands for the object, which io_uring
 *                          │               reads, mmap() maps, and openat() opens names beneath
 *                          └─▶ the callbacks of a stoker_storage: no descriptor, but a version
 *
 * At most one of descriptor and version is known: a file is watched by its stamp
 * (loader/dataset/stamps.h), of any other object each read says which version it is of.
 */
#ifndef STK_STORAGE_H
#define STK_STORAGE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/storage.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "loader/base/error.h"

struct stoker_storage {
    stoker_storage_ops ops; /* local: no callback is set */
    void *self;
    _Atomic uint32_t references; /* the caller and each data set; of the local one, unused */
};

/* The local file system. Sharing and closing it do nothing. */
extern stoker_storage stk_storage_local;

/* ---- names ---- */

/* Write FOLDER/NAME, or NAME if the folder is "". Returns false if it is too long. */
static inline bool stk_storage_join(char out[PATH_MAX], const char *folder, const char *name)
{
    const size_t bytes = strlen(folder);
    const bool slash = bytes > 0 && folder[bytes - 1] != '/';
    const int length = snprintf(out, PATH_MAX, "%s%s%s", folder, slash ? "/" : "", name);
    return length >= 0 && length < PATH_MAX;
}

/* Returns 0, or the code < 0 that *error explains. Links are followed. */
int stk_storage_look(const stoker_storage *storage, const char *name, stoker_object *out,
                     stoker_error *error);

/* Returns true if there is a file, a folder, or anything else of that name. */
bool stk_storage_has(const stoker_storage *storage, const char *name);

/* ---- folders ---- */

/* A folder whose objects are listed and opened by names relative to it. Of the local file system
 * nothing outside of it is reached, by ".." or a link. */
struct stk_storage_folder {
    const stoker_storage *storage;
    const char *path; /* the caller's; must outlive it */
    int fd;           /* -1 = none, or closed */
};

#define STK_STORAGE_FOLDER_CLOSED                                                                  \
    {                                                                                              \
        .storage = NULL, .path = NULL, .fd = -1                                                    \
    }

int stk_storage_enter(struct stk_storage_folder *out, const stoker_storage *storage,
                      const char *path, stoker_error *error);
void stk_storage_leave(struct stk_storage_folder *folder); /* a closed one is allowed */

/* What file() answers for a folder. */
static inline stoker_file stk_storage_folder_file(const struct stk_storage_folder *folder)
{
    return (stoker_file){ .path = folder->path,
                          .fd = folder->fd,
                          .storage = folder->fd < 0 ? folder->storage : NULL };
}

/* An entry of a list. */
struct stk_listed {
    stoker_object object; /* with `looks`: kind is FOLDER or 0, and the rest is not known */
    bool is_link;         /* once looked at: not followed, kind is OTHER */
    bool may_be_folder;   /* with `looks`: the file system does not say without a look */
    bool looks;           /* stk_listed_look() completes it */
    int folder;           /* descriptor that it lies in, or -1 */
};

/* Complete an entry. Returns 0 or an errno. */
int stk_listed_look(struct stk_listed *entry);

/* Takes an entry; see stoker_object_found. A code < 0 has its own error. */
typedef int stk_listed_found(void *context, struct stk_listed *entry);

/* List the entries of a folder beneath `root` (path "." = the root itself) whose names begin with
 * `begin`, in any order, "." and ".." left out. A folder that is a link is refused unless it is the
 * root. Returns 0, what found() returned, or a code that *error explains. */
int stk_storage_list(const struct stk_storage_folder *root, const char *path, const char *begin,
                     stk_listed_found *found, void *context, stoker_error *error);

/* ---- bytes ---- */

/* Read `bytes` bytes, or up to the end of the object. Continues after short reads. Returns the
 * bytes read or -errno, of which *said may have the reason. */
ssize_t stk_storage_read(const stoker_storage *storage, const char *name, uint64_t version,
                         void *to, size_t bytes, uint64_t offset, stoker_error *said);

/* Say why a read failed, in one line that names the storage. */
void stk_storage_reason(char *out, size_t out_bytes, const stoker_storage *storage, int os_errno,
                        const stoker_error *said);

/* Report a failed read. Returns the code. */
int stk_storage_read_failed(const stoker_storage *storage, int os_errno, const stoker_error *said,
                            const struct stk_place *place, stoker_error *error);

/* Read up to `bytes` bytes of the file `path` beneath a folder: a data set's, or AT_FDCWD. A path
 * that leads out of it is STOKER_EACCES. Returns the bytes read, or the code < 0 that *error
 * explains; *place is that of the read. */
ssize_t stk_storage_read_beneath(const stoker_file *folder, const char *path, uint64_t version,
                                 void *to, size_t bytes, uint64_t offset,
                                 const struct stk_place *place, stoker_error *error);

/* ---- local.c ---- */

/* Open a file for reading, without waiting for the other end of a pipe, close-on-exec and, if the
 * kernel allows it, without updating its time of last access. Only a regular file has a size and an
 * end: others are refused. */
int stk_local_open(const char *path, int *fd, struct stat *status, stoker_error *error);
/* What a name beneath a folder leads to. Returns 0 or an errno. */
int stk_local_look_beneath(int folder, const char *path, struct stat *out);
int stk_local_list(const struct stk_storage_folder *root, const char *path, const char *begin,
                   stk_listed_found *found, void *context, stoker_error *error);
/* Fill in the error of a system call. */
int stk_local_failed(const char *path, int os_errno, const char *call, stoker_error *error);

#endif
