/* list.c - see list.h. */
#include "datasets/folder/list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/source.h"
#include "loader/base/clock.h"

/* ---- bytes that grow ------------------------------------------------------------ */

/* Append; NULL bytes append zeros. 0 or STOKER_ENOMEM. */
static int append_bytes(struct stk_folder_buffer *buffer, const void *bytes, size_t count)
{
    uint8_t *base = stk_array_grow(buffer->base, 1, buffer->used, &buffer->capacity, count);
    if (base == NULL)
        return STOKER_ENOMEM;
    buffer->base = base;
    if (bytes != NULL)
        memcpy(buffer->base + buffer->used, bytes, count);
    buffer->used += count;
    return STOKER_OK;
}

void stk_folder_release(struct stk_folder_buffer *buffer)
{
    stk_free(buffer->base);
    *buffer = (struct stk_folder_buffer){ 0 };
}

void stk_folder_listing_free(struct stk_folder_listing *listing)
{
    stk_free(listing->path);
    stk_folder_release(&listing->names);
    stk_folder_release(&listing->entries);
    stk_folder_release(&listing->folders);
    *listing = (struct stk_folder_listing){ 0 };
}

/* ---- what an entry is ----------------------------------------------------------- */

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool is_extension(const char *name, const char *extension, size_t bytes)
{
    if (strlen(name) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (lower(name[i]) != extension[i])
            return false;
    return true;
}

/* What follows the last dot, if it is among the extensions; else NULL. */
static const char *sample_extension(const struct stk_folder_wish *wish, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL)
        return NULL;
    for (const char *at = wish->extensions; *at != '\0';) {
        const size_t bytes = strcspn(at, ",");
        if (is_extension(dot + 1, at, bytes))
            return dot + 1;
        at += bytes + (at[bytes] == ',');
    }
    return NULL;
}

int stk_folder_stamp(int root, const char *path, struct stk_folder_directory *out)
{
    struct stat status;
    if (fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (!S_ISDIR(status.st_mode))
        return ENOTDIR;
    out->inode = status.st_ino;
    out->modified_ns = stk_timespec_ns(status.st_mtim);
    out->changed_ns = stk_timespec_ns(status.st_ctim);
    return 0;
}

/* What a link leads to, if that is a file in the tree: sets *size. */
static bool follow(const struct stk_folder_wish *wish, const char *folder, const char *name,
                   uint64_t *size)
{
    char path[PATH_MAX];
    struct stat status;
    if (!stk_storage_join(path, folder, name) ||
        stk_local_look_beneath(wish->root->fd, path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    *size = (uint64_t)status.st_size;
    return true;
}

/* ---- the folder ----------------------------------------------------------------- */

struct visit {
    struct stk_folder_listing *listing;
    const struct stk_folder_wish *wish;
};

static int add_sample(const struct visit *visit, const stoker_object *object, const char *extension)
{
    const char *name = object->name;
    const uint64_t bytes = object->size;
    const struct stk_folder_entry entry = {
        .name = visit->listing->names.used,
        .version = object->version,
        .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
        .raw = is_extension(extension, "raw", 3) ? STK_FOLDER_RAW : 0
    };
    int rc = append_bytes(&visit->listing->names, name, strlen(name) + 1);
    return rc == STOKER_OK ? append_bytes(&visit->listing->entries, &entry, sizeof(entry)) : rc;
}

/* Skip entries deleted since the folder was read. Returns 0 or STOKER_ENOMEM. */
static int visit_entry(void *context, struct stk_listed *entry)
{
    const struct visit *visit = context;
    stoker_object *object = &entry->object;
    const char *extension = sample_extension(visit->wish, object->name);
    if (object->name[0] == '.' ||
        (extension == NULL && object->kind != STOKER_OBJECT_KIND_FOLDER && !entry->may_be_folder))
        return STOKER_OK;
    if (stk_listed_look(entry) != 0)
        return STOKER_OK;
    if (object->kind == STOKER_OBJECT_KIND_FOLDER)
        return append_bytes(&visit->listing->folders, object->name, strlen(object->name) + 1);
    if (extension == NULL)
        return STOKER_OK;
    if (object->kind == STOKER_OBJECT_KIND_FILE ||
        (entry->is_link && follow(visit->wish, visit->listing->path, object->name, &object->size)))
        return add_sample(visit, object, extension);
    visit->listing->passed_over++;
    return STOKER_OK;
}

static int compare(const void *a, const void *b, void *names)
{
    const struct stk_folder_entry *left = a;
    const struct stk_folder_entry *right = b;
    return strcmp((const char *)names + left->name, (const char *)names + right->name);
}

int stk_folder_list(struct stk_folder_listing *listing, const struct stk_folder_wish *wish,
                    stoker_error *error)
{
    const struct visit visit = { .listing = listing, .wish = wish };
    char whole[PATH_MAX];
    stoker_error said = { .code = STOKER_OK };
    int rc = STOKER_OK;
    (void)stk_storage_join(whole, wish->root->path, listing->path);
    if (wish->root->fd >= 0) {
        /* Taken before the names are read, so that a change in between is noticed later. */
        const int os_errno = stk_folder_stamp(wish->root->fd, listing->path, &listing->stamp);
        if (os_errno != 0)
            return stk_local_failed(whole, os_errno, "folder", error);
    }
    rc = stk_storage_list(wish->root, listing->path, "", visit_entry, (void *)&visit, &said);
    if (rc != STOKER_OK && said.code != rc)
        return stk_refuse_file(error, rc, whole, STOKER_NO_OFFSET, "folder");
    if (rc != STOKER_OK && error != NULL)
        *error = said;
    if (rc == STOKER_OK && listing->entries.used > 0)
        qsort_r(listing->entries.base, listing->entries.used / sizeof(struct stk_folder_entry),
                sizeof(struct stk_folder_entry), compare, listing->names.base);
    return rc;
}
