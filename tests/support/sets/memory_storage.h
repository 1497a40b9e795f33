/* memory_storage.h - a storage whose objects lie in memory, and which fails as a test asks.
 *
 *   DIR/a/b.bin ──copied──▶ object "data/a/b.bin", version 1
 */
#ifndef STK_TEST_MEMORY_STORAGE_H
#define STK_TEST_MEMORY_STORAGE_H

#include <errno.h>
#include <stdatomic.h>
#include <stoker/stoker.h>

#include "support/files/dataset_files.h"

enum { STK_MEMORY_OBJECTS_MAX = 512, STK_MEMORY_NAME_BYTES = 128, STK_MEMORY_RING = 1024 };

struct stk_memory_object {
    char name[STK_MEMORY_NAME_BYTES];
    uint8_t *bytes;
    size_t size;
};

struct stk_memory_storage {
    stoker_storage *storage;
    struct stk_memory_object objects[STK_MEMORY_OBJECTS_MAX];
    uint32_t count;
    uint64_t read_max;      /* a read returns no more; 0 = all */
    _Atomic uint64_t reads; /* so far */
    _Atomic uint64_t read_bytes;
    _Atomic uint64_t looks;
    uint64_t fails_from; /* reads from this one on fail: 0 = none */
    int read_errno;
    const char *says; /* what a failed read or list says */
    int list_code;    /* what list() returns; 0 = it lists */
    bool bad_names;   /* list() gives names with a '/' */
    _Atomic uint64_t version;
    _Atomic int destroyed;
};

static struct stk_memory_storage *stk_memory_loading;
static size_t stk_memory_skip;

static inline int stk_memory_take(const char *path, const struct stat *status, int kind,
                                  struct FTW *walk)
{
    struct stk_memory_storage *to = stk_memory_loading;
    (void)walk;
    if (kind != FTW_F)
        return 0;
    cr_assert_lt(to->count, STK_MEMORY_OBJECTS_MAX);
    struct stk_memory_object *object = &to->objects[to->count++];
    (void)snprintf(object->name, sizeof(object->name), "data%.100s", path + stk_memory_skip);
    object->size = (size_t)status->st_size;
    object->bytes = malloc(object->size + 1);
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL && object->bytes != NULL);
    cr_assert_eq(fread(object->bytes, 1, object->size, file), object->size);
    fclose(file);
    return 0;
}

static inline const struct stk_memory_object *stk_memory_find(
    const struct stk_memory_storage *storage, const char *name)
{
    for (uint32_t i = 0; i < storage->count; i++)
        if (strcmp(storage->objects[i].name, name) == 0)
            return &storage->objects[i];
    return NULL;
}

static inline int stk_memory_look(void *self, const char *name, stoker_object *out,
                                  stoker_error *error)
{
    struct stk_memory_storage *storage = self;
    const struct stk_memory_object *object = stk_memory_find(storage, name);
    const size_t bytes = strlen(name);
    atomic_fetch_add(&storage->looks, 1);
    if (object != NULL) {
        *out = (stoker_object){ .kind = STOKER_OBJECT_KIND_FILE,
                                .size = object->size,
                                .version = storage->version };
        return STOKER_OK;
    }
    for (uint32_t i = 0; i < storage->count; i++)
        if (strncmp(storage->objects[i].name, name, bytes) == 0 &&
            storage->objects[i].name[bytes] == '/') {
            out->kind = STOKER_OBJECT_KIND_FOLDER;
            return STOKER_OK;
        }
    (void)snprintf(error->message, sizeof(error->message), "nothing of that name in memory");
    return STOKER_ENOENT;
}

/* Returns true if an earlier object lies in the same folder: its name is given once. */
static inline bool stk_memory_seen(const struct stk_memory_storage *storage, uint32_t index,
                                   size_t bytes)
{
    for (uint32_t i = 0; i < index; i++)
        if (strncmp(storage->objects[i].name, storage->objects[index].name, bytes) == 0)
            return true;
    return false;
}

static inline int stk_memory_list(void *self, const char *prefix, stoker_object_found *found,
                                  void *context, stoker_error *error)
{
    const struct stk_memory_storage *storage = self;
    const char *slash = strrchr(prefix, '/');
    const size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - prefix) + 1;
    int rc = storage->list_code;
    if (rc != 0)
        (void)snprintf(error->message, sizeof(error->message), "%s", storage->says);
    for (uint32_t i = 0; rc == 0 && i < storage->count; i++) {
        const struct stk_memory_object *object = &storage->objects[i];
        if (strncmp(object->name, prefix, strlen(prefix)) != 0)
            continue;
        const char *rest = object->name + folder_bytes;
        const size_t bytes = strcspn(rest, "/");
        char name[STK_MEMORY_NAME_BYTES];
        (void)snprintf(name, sizeof(name), "%.*s%s", (int)bytes, rest,
                       storage->bad_names ? "/" : "");
        stoker_object entry = { .name = name,
                                .kind = STOKER_OBJECT_KIND_FILE,
                                .size = object->size,
                                .version = storage->version };
        if (rest[bytes] == '/' && stk_memory_seen(storage, i, folder_bytes + bytes + 1))
            continue;
        if (rest[bytes] == '/')
            entry.kind = STOKER_OBJECT_KIND_FOLDER;
        rc = found(context, &entry);
    }
    return rc;
}

static inline int64_t stk_memory_read(void *self, const char *name, uint64_t version,
                                      uint64_t offset, void *buffer, uint64_t bytes,
                                      stoker_error *error)
{
    struct stk_memory_storage *storage = self;
    const struct stk_memory_object *object = stk_memory_find(storage, name);
    const uint64_t nth = atomic_fetch_add(&storage->reads, 1) + 1;
    if (storage->fails_from > 0 && nth >= storage->fails_from) {
        (void)snprintf(error->message, sizeof(error->message), "%s, %s", name, storage->says);
        return -storage->read_errno;
    }
    if (object == NULL)
        return -ENOENT;
    if (version != 0 && version != storage->version)
        return -ESTALE;
    if (offset >= object->size)
        return 0;
    uint64_t count = object->size - offset < bytes ? object->size - offset : bytes;
    if (storage->read_max > 0 && count > storage->read_max)
        count = storage->read_max;
    memcpy(buffer, object->bytes + offset, count);
    (void)atomic_fetch_add(&storage->read_bytes, count);
    return (int64_t)count;
}

static inline void stk_memory_destroy(void *self)
{
    struct stk_memory_storage *storage = self;
    atomic_fetch_add(&storage->destroyed, 1);
    for (uint32_t i = 0; i < storage->count; i++)
        free(storage->objects[i].bytes);
}

/* ---- its own reader: finishes reads last in, first out ------------------------------------- */

struct stk_memory_ring {
    struct stk_memory_storage *storage;
    const stoker_file *files;
    stoker_error said;
    stoker_read *reads[STK_MEMORY_RING];
    uint32_t count;
};

static inline int stk_memory_open(void *self, void **ring, const stoker_reader_setup *setup,
                                  stoker_error *error)
{
    struct stk_memory_ring *opened = calloc(1, sizeof(*opened));
    (void)error;
    cr_assert(opened != NULL && setup->depth <= STK_MEMORY_RING);
    opened->storage = self;
    opened->files = setup->files;
    *ring = opened;
    return STOKER_OK;
}

static inline int stk_memory_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct stk_memory_ring *opened = ring;
    for (uint32_t i = 0; i < count; i++)
        opened->reads[opened->count++] = reads[i];
    return STOKER_OK;
}

static inline int stk_memory_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct stk_memory_ring *opened = ring;
    (void)max;
    if (opened->count == 0 || wait_ns == 0) /* so that somebody has to wait */
        return 0;
    stoker_read *read = opened->reads[--opened->count];
    const stoker_file *file = &opened->files[read->file];
    char name[2 * STK_MEMORY_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%s%s%s", file->path,
                   read->path != NULL && file->path[0] != '\0' ? "/" : "",
                   read->path != NULL ? read->path : "");
    opened->said.message[0] = '\0';
    read->result =
        stk_memory_read(opened->storage, name, read->path != NULL ? read->version : file->version,
                        read->offset, read->buffer, read->bytes, &opened->said);
    read->reason = opened->said.message[0] != '\0' ? opened->said.message : NULL;
    done[0] = read;
    return 1;
}

static inline int stk_memory_close(void *ring, int64_t wait_ns)
{
    (void)wait_ns;
    free(ring);
    return STOKER_OK;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Copy the files below a directory. reader: becomes the storage's own, and must outlive it; NULL =
 * it has none. */
static inline void stk_memory_storage_make(struct stk_memory_storage *out,
                                           const struct stk_directory *directory,
                                           stoker_reader *reader)
{
    const stoker_storage_ops ops = { .struct_size = sizeof(ops),
                                     .name = "memory",
                                     .look = stk_memory_look,
                                     .list = stk_memory_list,
                                     .read = stk_memory_read,
                                     .reader = reader,
                                     .destroy = stk_memory_destroy };
    *out = (struct stk_memory_storage){ .version = 1, .says = "" };
    stk_memory_loading = out;
    stk_memory_skip = strlen(directory->path);
    cr_assert_eq(nftw(directory->path, stk_memory_take, 8, FTW_PHYS), 0);
    if (reader != NULL)
        *reader = (stoker_reader){ .struct_size = sizeof(*reader),
                                   .name = "memory",
                                   .self = out,
                                   .open = stk_memory_open,
                                   .submit = stk_memory_submit,
                                   .reap = stk_memory_reap,
                                   .close = stk_memory_close };
    cr_assert_eq(stoker_storage_create(&out->storage, &ops, out, NULL), STOKER_OK);
}

#endif
