/* storage.c - see storage.h. */
#include "loader/storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/io/open_beneath.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/storage/remote/url.h"

enum { INTERRUPTED_MAX = 128 }; /* times in a row, as in workers (stoker/reader.h) */

/* ---- life ----------------------------------------------------------------------- */

int stoker_storage_create(stoker_storage **out, const stoker_storage_ops *ops, void *self,
                          stoker_error *error)
{
    if (out == NULL || ops == NULL ||
        !stk_struct_fits(ops, STK_SIZE_UP_TO(stoker_storage_ops, destroy), sizeof(*ops)))
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "storage: out or ops is NULL, or ops->struct_size is not set, or "
                                 "it has callbacks that this version does not know");
    if (ops->name == NULL || ops->look == NULL || ops->list == NULL || ops->read == NULL)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "storage: its name, look, list or read is NULL");
    stoker_storage *storage = stk_calloc(1, sizeof(*storage));
    if (storage == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "storage %.64s", ops->name);
    stk_struct_read(&storage->ops, sizeof(storage->ops), ops, ops->struct_size);
    storage->self = self;
    atomic_init(&storage->references, 1U);
    *out = storage;
    return STOKER_OK;
}

stoker_storage *stoker_storage_share(stoker_storage *storage)
{
    if (storage != NULL)
        atomic_fetch_add_explicit(&storage->references, 1U, memory_order_relaxed);
    return storage;
}

void stoker_storage_close(stoker_storage **storage)
{
    if (storage == NULL || *storage == NULL)
        return;
    stoker_storage *const closing = *storage;
    *storage = NULL;
    /* Release and acquire: the last owner frees what the others wrote. */
    if (closing == &stk_storage_local ||
        atomic_fetch_sub_explicit(&closing->references, 1U, memory_order_acq_rel) > 1)
        return;
    if (closing->ops.destroy != NULL)
        closing->ops.destroy(closing->self);
    stk_free(closing);
}

/* ---- callbacks ------------------------------------------------------------------ */

/* Put the names of storage and object in front of the callback's own message. */
static int callback_failed(const stoker_storage *storage, const char *name, int rc,
                           const char *call, stoker_error *said, stoker_error *error)
{
    const int code = stk_callback_code(rc, call, said);
    return stk_refuse_file(error, code, name, STOKER_NO_OFFSET, "storage %.64s: %s: %s",
                           storage->ops.name, call,
                           said->message[0] != '\0' ? said->message : stoker_strerror(code));
}

static bool is_kind(stoker_object_kind kind)
{
    return kind >= STOKER_OBJECT_KIND_FILE && kind <= STOKER_OBJECT_KIND_OTHER;
}

static int look_local(const char *name, stoker_object *out, stoker_error *error)
{
    struct stat status;
    if (stat(name, &status) != 0)
        return stk_local_failed(name, errno, "stat", error);
    out->kind = S_ISREG(status.st_mode)   ? STOKER_OBJECT_KIND_FILE
                : S_ISDIR(status.st_mode) ? STOKER_OBJECT_KIND_FOLDER
                                          : STOKER_OBJECT_KIND_OTHER;
    out->size = (uint64_t)status.st_size;
    return STOKER_OK;
}

bool stk_storage_is_url(const char *name)
{
    return stk_remote_scheme_of(name) != STK_REMOTE_NONE;
}

int stk_storage_look(const stoker_storage *storage, const char *name, stoker_object *out,
                     stoker_error *error)
{
    *out = (stoker_object){ .name = name };
    if (storage == &stk_storage_local)
        return look_local(name, out, error);
    stoker_error said;
    stk_error_clear(&said);
    int rc = storage->ops.look(storage->self, name, out, &said);
    if (rc == STOKER_OK && !is_kind(out->kind))
        rc = STOKER_EINVAL;
    out->name = name;
    return rc == STOKER_OK ? rc : callback_failed(storage, name, rc, "look()", &said, error);
}

bool stk_storage_has(const stoker_storage *storage, const char *name)
{
    stoker_object object;
    return stk_storage_look(storage, name, &object, NULL) == STOKER_OK;
}

/* ---- folders -------------------------------------------------------------------- */

int stk_storage_enter(struct stk_storage_folder *out, const stoker_storage *storage,
                      const char *path, stoker_error *error)
{
    *out = (struct stk_storage_folder){ .storage = storage, .path = path, .fd = -1 };
    if (storage != &stk_storage_local)
        return STOKER_OK;
    out->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return out->fd >= 0 ? STOKER_OK : stk_local_failed(path, errno, "opening the folder", error);
}

void stk_storage_leave(struct stk_storage_folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    folder->fd = -1;
}

/* Passes what a storage's list() finds on to a stk_listed_found. */
struct listing {
    stk_listed_found *found;
    void *context;
    bool invalid; /* the storage passed an object without a proper name or kind */
    bool ended;   /* found() returned something other than 0 */
};

static int take_object(void *context, const stoker_object *object)
{
    struct listing *listing = context;
    struct stk_listed listed = { .object = *object, .folder = -1 };
    listing->invalid = object->name == NULL || object->name[0] == '\0' ||
                       strchr(object->name, '/') != NULL || !is_kind(object->kind);
    const int rc = listing->invalid ? STOKER_EINVAL : listing->found(listing->context, &listed);
    listing->ended = rc != 0;
    return rc;
}

int stk_storage_list(const struct stk_storage_folder *root, const char *path, const char *begin,
                     stk_listed_found *found, void *context, stoker_error *error)
{
    const stoker_storage *storage = root->storage;
    char folder[PATH_MAX], prefix[PATH_MAX];
    if (root->fd >= 0)
        return stk_local_list(root, path, begin, found, context, error);
    const bool fits = strcmp(path, ".") == 0 ? stk_storage_join(prefix, root->path, begin)
                                             : stk_storage_join(folder, root->path, path) &&
                                                   stk_storage_join(prefix, folder, begin);
    if (!fits)
        return stk_refuse_file(error, STOKER_ELIMIT, root->path, STOKER_NO_OFFSET,
                               "a name in it is too long");
    struct listing listing = { .found = found, .context = context };
    stoker_error said;
    stk_error_clear(&said);
    const int rc = storage->ops.list(storage->self, prefix, take_object, &listing, &said);
    if (rc == STOKER_OK || (listing.ended && !listing.invalid))
        return rc;
    if (listing.invalid)
        return stk_refuse_file(error, STOKER_EINVAL, prefix, STOKER_NO_OFFSET,
                               "storage %.64s: list(): an object without a name or a kind, or with "
                               "a '/' in its name",
                               storage->ops.name);
    return callback_failed(storage, prefix, rc, "list()", &said, error);
}

/* ---- bytes ---------------------------------------------------------------------- */

/* Read `bytes` bytes, or up to the end of the object. Returns the number of bytes read, or -errno
 * with the storage's own reason, if it gave one, in *said. */
static ssize_t read_up_to(const stoker_storage *storage, const char *name, uint64_t version,
                          void *to, size_t bytes, uint64_t offset, stoker_error *said)
{
    size_t done = 0;
    for (int interrupted = 0; done < bytes;) {
        stk_error_clear(said);
        const int64_t got = storage->ops.read(storage->self, name, version, offset + done,
                                              (uint8_t *)to + done, bytes - done, said);
        if (got == -EINTR && ++interrupted < INTERRUPTED_MAX)
            continue;
        if (got > 0 && (uint64_t)got > bytes - done) {
            (void)stk_refuse_option(said, STOKER_EIO, "read() returns %lld of %zu bytes",
                                    (long long)got, bytes - done);
            return -EIO;
        }
        if (got < 0)
            return got < -INT_MAX ? -EIO : (ssize_t)got;
        if (got == 0)
            break;
        done += (size_t)got;
        interrupted = 0;
    }
    return (ssize_t)done;
}

void stk_storage_reason(char *out, size_t out_bytes, const stoker_storage *storage, int os_errno,
                        const stoker_error *said)
{
    const char *what = said->message[0] != '\0' ? said->message
                       : os_errno == ESTALE     ? "another version than when it was opened"
                                                : "read() failed";
    (void)snprintf(out, out_bytes, "storage %.64s: %s", storage->ops.name, what);
}

static int read_failed(const stoker_storage *storage, int os_errno, const stoker_error *said,
                       const struct stk_place *place, stoker_error *error)
{
    char what[STK_LINE_BYTES];
    struct stk_place at = *place;
    stk_storage_reason(what, sizeof(what), storage, os_errno, said);
    at.os_errno = os_errno;
    return stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_READ, &at, "%s", what);
}

int stk_storage_read(const stoker_storage *storage, const char *name, uint64_t version, void *to,
                     size_t bytes, struct stk_place *place, stoker_error *error)
{
    stoker_error said;
    const ssize_t got = read_up_to(storage, name, version, to, bytes, place->offset, &said);
    if (got < 0)
        return read_failed(storage, (int)-got, &said, place, error);
    place->offset += (uint64_t)got;
    return (size_t)got == bytes
               ? STOKER_OK
               : stk_error_set(error, STOKER_ETRUNCATED, STOKER_STAGE_READ, place, NULL);
}

ssize_t stk_storage_read_beneath(const stoker_file *folder, const char *path, uint64_t version,
                                 void *to, size_t bytes, uint64_t offset,
                                 const struct stk_place *place, stoker_error *error)
{
    char name[PATH_MAX];
    stoker_error said = { .message = "" };
    ssize_t got = -ENAMETOOLONG;
    if (folder->storage == NULL)
        got = stk_read_all_beneath(folder->fd, path, to, bytes, offset);
    else if (stk_storage_join(name, folder->path, path))
        got = read_up_to(folder->storage, name, version, to, bytes, offset, &said);
    if (got >= 0)
        return got;
    if (folder->storage != NULL)
        return read_failed(folder->storage, (int)-got, &said, place, error);
    struct stk_place at = *place;
    at.os_errno = (int)-got;
    const bool stray = got == -EXDEV || got == -ELOOP;
    return stk_error_set(error, stray ? STOKER_EACCES : stk_error_from_errno((int)-got),
                         STOKER_STAGE_READ, &at, NULL);
}
