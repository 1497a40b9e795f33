/* stoker/storage.h - let data set formats read from a storage of your own.
 *
 *   stoker_dataset_open("tar:s/{0..9}.tar", options.storage)
 *     │ at open, in the calling thread or a few threads of the format
 *     ├─ list("s/", ...)                 names, kinds, sizes and versions, in one call
 *     ├─ look("s/0.tar")                 size and version of one name
 *     ├─ read("s/0.tar", version, ...)   headers, indexes
 *     ▼
 *   data set ──▶ stoker_file { path "s/0.tar", fd -1, storage, size, version }
 *     │ in each worker of a loader
 *     └─ reader: open ─▶ submit, reap, ... ─▶ close     many reads in flight
 *        or, without one, read(): one after the other
 *
 * All names in the spec are names of that storage, except those that a format writes (index=).
 * Folders are prefixes that end in '/'. Without a storage, names are local paths.
 *
 * A version is a number that differs in every version of an object: a hash of its ETag, a
 * generation, a time of modification. It is known before the first byte is read, and every read
 * repeats it: a read of another version fails with -ESTALE, which ends the run with
 * STOKER_ECHANGED. 0 = not known: then nothing notices a change that keeps the size.
 */
#ifndef STOKER_STORAGE_H
#define STOKER_STORAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/reader.h>

STOKER_BEGIN_DECLS

typedef enum stoker_object_kind {
    STOKER_OBJECT_KIND_FILE = 1,   /* has bytes */
    STOKER_OBJECT_KIND_FOLDER = 2, /* names continue behind a '/' */
    STOKER_OBJECT_KIND_OTHER = 3   /* cannot be read: formats leave it out */
} stoker_object_kind;

/* What is known about a name. Its size never changes: new members replace reserved ones. */
typedef struct stoker_object {
    const char *name; /* list: what follows the last '/' of the prefix, without a '/' at its end */
    stoker_object_kind kind;
    uint64_t size; /* bytes of a file */
    uint64_t version;
    uint64_t reserved[2]; /* 0 */
} stoker_object;

/* Called for each object of a list; the object is valid during the call only. Returns 0 to go on;
 * list() must stop at any other value, and return it. */
typedef int stoker_object_found(void *context, const stoker_object *object);

/* The callbacks of a storage. Many threads may call them at once. *error is never NULL: a message
 * in it becomes part of the library's, which names storage, object and offset. */
typedef struct stoker_storage_ops {
    size_t struct_size; /* sizeof(stoker_storage_ops) */
    const char *name;   /* "memory", "s3": for messages; static */

    /* Fill *out, which is zeroed, for one name. Returns 0 or a stoker_err < 0: STOKER_ENOENT if
     * nothing has that name. */
    int (*look)(void *self, const char *name, stoker_object *out, stoker_error *error);

    /* List the names that begin with `prefix`, in any order: call found() for each file without a
     * further '/' in its name, and once for each folder that contains the others. "a/" lists the
     * folder a, "a/b" what begins with b in it, "" the top level. Returns 0, also if there is
     * nothing; what found() returned if that is not 0; or a stoker_err < 0. */
    int (*list)(void *self, const char *prefix, stoker_object_found *found, void *context,
                stoker_error *error);

    /* Read up to `bytes` >= 1 bytes of an object at `offset`. Returns their number, 0 at the end of
     * the object, or -errno: -ESTALE if `version` is neither 0 nor the object's. The library
     * continues after a short read, and calls again after -EINTR, in workers also after -EAGAIN, up
     * to 128 times in a row. */
    int64_t (*read)(void *self, const char *name, uint64_t version, uint64_t offset, void *buffer,
                    uint64_t bytes, stoker_error *error);

    /* Keeps many reads in flight for the workers of a loader; must outlive the storage. It receives
     * reads of this storage only, although setup.files lists the files of all. A read without a
     * path wants the object files[read.file].path in version files[read.file].version. A read with
     * a path wants the object "FILE/PATH", where FILE is files[read.file].path, or "PATH" if FILE
     * is empty, in read.version. Optional: NULL = workers call read(). */
    const stoker_reader *reader;

    /* Free self. Optional. Called once no data set uses the storage any more. */
    void (*destroy)(void *self);
} stoker_storage_ops;

/* Make a storage of your own. On success *out owns self, and you close it with
 * stoker_storage_close(); on failure self stays yours, *out is untouched, and *error has the cause.
 * error may be NULL. ops is copied. Any thread. Errors: STOKER_EINVAL (an argument is NULL, a
 * callback is missing), STOKER_ENOMEM. */
STOKER_API int stoker_storage_create(stoker_storage **out, const stoker_storage_ops *ops,
                                     void *self, stoker_error *error);

/* Add an owner. Returns storage, which may be NULL. Any thread. */
STOKER_API stoker_storage *stoker_storage_share(stoker_storage *storage);

/* Give up your share and set *storage to NULL. NULL and a pointer to NULL are allowed. It is freed
 * once the data sets opened from it have ended, too. Any thread. */
STOKER_API void stoker_storage_close(stoker_storage **storage);

STOKER_END_DECLS
#endif
