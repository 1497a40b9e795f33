/* storage.h - one interface below every format: list, look at, open and read named objects.
 *
 *   format ──▶ storage.c ──┬─▶ local.c     paths: a descriptor stands for the object, which io_uring
 *                          │               reads, mmap() maps, and openat() opens names beneath
 *                          └─▶ the callbacks of a stoker_storage: no descriptor, but a version
 *
 * An object has either a descriptor or a version. Changes of a file are noticed by its stamp
 * (loader/dataset/stamps.h), those of other objects because every read names the version it wants.
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
    bool urls_only;              /* other names are local files */
    _Atomic uint32_t references; /* the caller's and each data set's; unused in the local one */
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

/* Returns true for a URL, whose characters have a meaning of their own. */
bool stk_storage_is_url(const char *name);

/* Returns 0, or the code < 0 that *error explains. Links are followed. */
int stk_storage_look(const stoker_storage *storage, const char *name, stoker_object *out,
                     stoker_error *error);

/* Returns true if a read may take a round trip: read much at a time, and many together. */
static inline bool stk_storage_is_far(const stoker_storage *storage)
{
    return storage != &stk_storage_local;
}

/* Returns true if there is a file, a folder, or anything else of that name. */
bool stk_storage_has(const stoker_storage *storage, const char *name);

/* ---- folders ---- */

/* A folder whose objects are listed and opened by names relative to it. In the local file system,
 * neither ".." nor a link leads out of it. */
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
    int folder;           /* descriptor of the folder that contains it, or -1 */
};

/* Complete an entry. Returns 0 or an errno. */
int stk_listed_look(struct stk_listed *entry);

/* Called for each entry; see stoker_object_found. If it returns a code < 0, it has explained it. */
typedef int stk_listed_found(void *context, struct stk_listed *entry);

/* List the entries of a folder beneath `root` (path "." = the root itself) whose names begin with
 * `begin`, in any order, "." and ".." left out. A folder that is a link is refused unless it is the
 * root. Returns 0, what found() returned, or a code that *error explains. */
int stk_storage_list(const struct stk_storage_folder *root, const char *path, const char *begin,
                     stk_listed_found *found, void *context, stoker_error *error);

/* ---- bytes ---- */

/* Read exactly `bytes` bytes of an object at place->offset, which then is where reading ended.
 * Returns 0, or the code < 0 that *error explains: STOKER_ETRUNCATED if the object ends before. */
int stk_storage_read(const stoker_storage *storage, const char *name, uint64_t version, void *to,
                     size_t bytes, struct stk_place *place, stoker_error *error);

/* Explain in one line, which names the storage, why a read failed. */
void stk_storage_reason(char *out, size_t out_bytes, const stoker_storage *storage, int os_errno,
                        const stoker_error *said);

/* Read up to `bytes` bytes of the file `path` beneath a data set's folder (AT_FDCWD is allowed). A
 * path that leaves the folder is refused with STOKER_EACCES. Returns the number of bytes read, or
 * the code < 0 that *error explains. place: where the read begins, for the error. */
ssize_t stk_storage_read_beneath(const stoker_file *folder, const char *path, uint64_t version,
                                 void *to, size_t bytes, uint64_t offset,
                                 const struct stk_place *place, stoker_error *error);

/* ---- local.c ---- */

/* Open a regular file for reading: close-on-exec, without waiting for the other end of a pipe, and,
 * if the kernel allows it, without updating its time of last access. Other kinds are refused: they
 * have neither a size nor an end. */
int stk_local_open(const char *path, int *fd, struct stat *status, stoker_error *error);
/* Look up a name beneath a folder. Returns 0 or an errno. */
int stk_local_look_beneath(int folder, const char *path, struct stat *out);
int stk_local_list(const struct stk_storage_folder *root, const char *path, const char *begin,
                   stk_listed_found *found, void *context, stoker_error *error);
/* Fill in the error of a system call. */
int stk_local_failed(const char *path, int os_errno, const char *call, stoker_error *error);

#endif
