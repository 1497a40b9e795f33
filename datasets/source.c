/* source.c - see source.h. */
#include "datasets/source.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/fault.h"
#include "loader/base/io/pread.h"

static int open_local(struct stk_source *source, stoker_error *error)
{
    struct stat status;
    const int rc = stk_local_open(source->path, &source->fd, &status, error);
    if (rc != STOKER_OK)
        return rc;
    source->size = (uint64_t)status.st_size;
    source->stamp = stk_file_stamp_of(&status);
    return STOKER_OK;
}

/* There is nothing to open: from now on, size and version are known. */
static int look(struct stk_source *source, stoker_error *error)
{
    stoker_object object;
    const int rc = stk_storage_look(source->storage, source->path, &object, error);
    if (rc != STOKER_OK)
        return rc;
    source->size = object.size;
    source->version = object.version;
    if (object.kind == STOKER_OBJECT_KIND_FILE)
        return STOKER_OK;
    return stk_refuse_file(
        error, object.kind == STOKER_OBJECT_KIND_FOLDER ? STOKER_EISDIR : STOKER_ENOTSUP,
        source->path, STOKER_NO_OFFSET, "storage %.64s: not a file", source->storage->ops.name);
}

int stk_source_open(struct stk_source *source, const stoker_storage *storage, const char *path,
                    stoker_error *error)
{
    *source = (struct stk_source){ .path = path, .storage = storage, .fd = -1 };
    const int rc = storage == &stk_storage_local ? open_local(source, error) : look(source, error);
    if (rc != STOKER_OK)
        stk_source_close(source);
    return rc;
}

void stk_source_close(struct stk_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    source->storage = NULL;
}

int stk_source_read(const struct stk_source *source, void *to, size_t bytes, uint64_t offset,
                    stoker_error *error)
{
    assert(source->storage != NULL);
    struct stk_place place = stk_at(source->path, offset);
    return source->fd >= 0 ? stk_pread_all(source->fd, to, bytes, place, error)
                           : stk_storage_read(source->storage, source->path, source->version, to,
                                              bytes, &place, error);
}

bool stk_source_begins(const stoker_storage *storage, const char *path, void *to, size_t bytes)
{
    struct stk_source source;
    if (stk_source_open(&source, storage, path, NULL) != STOKER_OK)
        return false;
    const bool read =
        source.size >= bytes && stk_source_read(&source, to, bytes, 0, NULL) == STOKER_OK;
    stk_source_close(&source);
    return read;
}

int stk_source_check(const struct stk_source *source, stoker_error *error)
{
    struct stat status;
    if (source->fd < 0) /* each read has compared the version */
        return STOKER_OK;
    if (fstat(source->fd, &status) != 0)
        return stk_local_failed(source->path, errno, "fstat", error);
    const struct stk_file_stamp now = stk_file_stamp_of(&status);
    if (stk_file_stamp_holds(&source->stamp, &now))
        return STOKER_OK;
    return stk_refuse_file(error, STOKER_ECHANGED, source->path, STOKER_NO_OFFSET,
                           "written to while it was being opened");
}

int stk_source_map(const struct stk_source *source, const void **out, stoker_error *error)
{
    if (source->fd < 0)
        return stk_refuse_file(error, STOKER_ENOTSUP, source->path, STOKER_NO_OFFSET,
                               "map=1: storage %.64s has no files to map",
                               source->storage->ops.name);
    void *mapped = stk_fault_hit(STK_FAULT_MEMORY)
                       ? MAP_FAILED
                       : mmap(NULL, (size_t)source->size, PROT_READ, MAP_SHARED, source->fd, 0);
    if (mapped == MAP_FAILED)
        return stk_refuse_file(error, STOKER_ENOMEM, source->path, STOKER_NO_OFFSET, "mapping it");
    *out = mapped;
    return STOKER_OK;
}
