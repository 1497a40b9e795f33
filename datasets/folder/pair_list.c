/* pair_list.c - see pair_list.h. */
#include "datasets/folder/pair_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/error.h"

enum { DEPTH_MAX = 32, FIRST_FILES = 256, FIRST_BYTES = 16384 };

struct listing {
    struct stk_pair_list *list;
    struct stk_storage_folder root;
    int depth;
    uint64_t *bytes_left;
    stoker_error *error;
    char path[PATH_MAX]; /* path of the folder at hand, or of an entry in it */
    size_t path_bytes;
};

static int fail_listing(const struct listing *listing, int code, int os_errno, const char *what)
{
    struct stk_place place = STK_NOWHERE;
    place.path = listing->path;
    place.os_errno = os_errno;
    return stk_error_set(listing->error, code, STOKER_STAGE_OPEN, &place, "folder: %s", what);
}

const char *stk_pair_path(const struct stk_pair_list *list, size_t at)
{
    return list->paths + list->files[at].path;
}

const char *stk_pair_key(const struct stk_pair_list *list, size_t at)
{
    return stk_pair_path(list, at) + list->root_bytes;
}

int stk_pair_compare(const struct stk_pair_list *x, size_t a, const struct stk_pair_list *y,
                     size_t b)
{
    const uint32_t a_bytes = x->files[a].key_bytes;
    const uint32_t b_bytes = y->files[b].key_bytes;
    const int order =
        memcmp(stk_pair_key(x, a), stk_pair_key(y, b), a_bytes < b_bytes ? a_bytes : b_bytes);
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* ---- room ----------------------------------------------------------------------- */

/* Make room for `more` elements behind `used`. */
static int grow_list(const struct listing *listing, void **array, size_t element_bytes, size_t used,
                     size_t more, size_t *room, size_t first)
{
    size_t larger = *room == 0 ? first : *room;
    while (larger - used < more)
        larger *= 2;
    if (larger == *room)
        return STOKER_OK;
    const uint64_t bytes = (uint64_t)(larger - *room) * element_bytes;
    if (bytes > *listing->bytes_left)
        return fail_listing(listing, STOKER_ELIMIT, 0,
                            "the list of files takes more than max_bytes");
    void *moved = stk_calloc(larger, element_bytes);
    if (moved == NULL)
        return fail_listing(listing, STOKER_ENOMEM, 0, "the list of files");
    if (used > 0)
        memcpy(moved, *array, used * element_bytes);
    stk_free(*array);
    *array = moved;
    *room = larger;
    *listing->bytes_left -= bytes;
    return STOKER_OK;
}

/* Add the file listing->path. */
static int add_file(const struct listing *listing, const stoker_object *object)
{
    struct stk_pair_list *list = listing->list;
    void *files = list->files;
    void *paths = list->paths;
    int rc = grow_list(listing, &files, sizeof(list->files[0]), list->count, 1, &list->room,
                       FIRST_FILES);
    list->files = files;
    if (rc == STOKER_OK)
        rc = grow_list(listing, &paths, 1, list->paths_bytes, listing->path_bytes + 1,
                       &list->paths_room, FIRST_BYTES);
    list->paths = paths;
    if (rc != STOKER_OK)
        return rc;
    const char *key = listing->path + list->root_bytes;
    const char *slash = strrchr(key, '/');
    const char *dot = strrchr(slash == NULL ? key : slash, '.');
    list->files[list->count++] = (struct stk_pair_file){
        .path = list->paths_bytes,
        .key_bytes = (uint32_t)(dot == NULL ? strlen(key) : (size_t)(dot - key)),
        .bytes = object->size < UINT32_MAX ? (uint32_t)object->size : UINT32_MAX,
        .version = object->version,
    };
    memcpy(list->paths + list->paths_bytes, listing->path, listing->path_bytes + 1);
    list->paths_bytes += listing->path_bytes + 1;
    return STOKER_OK;
}

/* ---- folders -------------------------------------------------------------------- */

static int list_folder(struct listing *listing);

/* A file, a folder, or something to be left out. */
static int take_entry(void *context, struct stk_listed *entry)
{
    struct listing *listing = context;
    const char *name = entry->object.name;
    const size_t before = listing->path_bytes;
    if (name[0] == '.')
        return STOKER_OK;
    const int bytes = snprintf(listing->path + before, sizeof(listing->path) - before, "/%s", name);
    if (bytes < 0 || (size_t)bytes >= sizeof(listing->path) - before)
        return fail_listing(listing, STOKER_ELIMIT, 0, "a path is too long");
    listing->path_bytes += (size_t)bytes;
    const int os_errno = stk_listed_look(entry);
    int rc = STOKER_OK;
    if (os_errno != 0 && os_errno != ENOENT) /* what is gone by now is skipped */
        rc = fail_listing(listing, stk_error_from_errno(os_errno), os_errno, "looking at a file");
    else if (os_errno == 0 && entry->object.kind == STOKER_OBJECT_KIND_FOLDER)
        rc = list_folder(listing);
    else if (os_errno == 0 && entry->object.kind == STOKER_OBJECT_KIND_FILE)
        rc = add_file(listing, &entry->object);
    listing->path_bytes = before;
    listing->path[before] = '\0';
    return rc;
}

/* List the folder listing->path. */
static int list_folder(struct listing *listing)
{
    const bool whole = listing->depth == 0;
    stoker_error said = { .code = STOKER_OK };
    if (listing->depth > DEPTH_MAX)
        return fail_listing(listing, STOKER_ELIMIT, 0, "more than 32 folders in each other");
    listing->depth++;
    const int rc =
        stk_storage_list(&listing->root, whole ? "." : listing->path + listing->list->root_bytes,
                         "", take_entry, listing, &said);
    listing->depth--;
    if (rc == STOKER_ENOENT && said.code == rc && !whole)
        return STOKER_OK;
    if (rc != STOKER_OK && said.code == rc && listing->error != NULL)
        *listing->error = said;
    return rc;
}

/* ---- all of it ------------------------------------------------------------------ */

struct order {
    const struct stk_pair_list *list;
};

static int by_key(const void *a, const void *b, void *argument)
{
    const struct stk_pair_list *list = ((const struct order *)argument)->list;
    const struct stk_pair_file *x = a;
    const struct stk_pair_file *y = b;
    const uint32_t bytes = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
    const int order = memcmp(list->paths + x->path + list->root_bytes,
                             list->paths + y->path + list->root_bytes, bytes);
    return order != 0 ? order : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

static int sort_files(const struct listing *listing)
{
    struct stk_pair_list *list = listing->list;
    struct order order = { .list = list };
    if (list->count == 0)
        return fail_listing(listing, STOKER_EEMPTY, 0, "no file in it");
    qsort_r(list->files, list->count, sizeof(list->files[0]), by_key, &order);
    for (size_t i = 1; i < list->count; i++)
        if (stk_pair_compare(list, i - 1, list, i) == 0)
            return stk_refuse_spec(listing->error, STOKER_EMISMATCH,
                                   "folder: %s and %s differ only in their extension",
                                   stk_pair_path(list, i - 1), stk_pair_path(list, i));
    return STOKER_OK;
}

/* The folder's name: of a local one absolute, so that a later chdir() changes nothing. */
static int take_root(struct listing *listing, const stoker_storage *storage, const char *folder)
{
    char *whole = storage == &stk_storage_local ? realpath(folder, NULL) : NULL;
    const char *name = whole == NULL ? folder : whole;
    size_t bytes = strlen(name);
    int os_errno = whole == NULL && storage == &stk_storage_local ? errno : 0;
    if (bytes >= sizeof(listing->path) - 1)
        os_errno = ENAMETOOLONG;
    while (whole == NULL && bytes > 1 && name[bytes - 1] == '/')
        bytes--;
    (void)snprintf(listing->path, sizeof(listing->path), "%.*s", (int)bytes, name);
    free(whole);
    if (os_errno != 0)
        return fail_listing(listing, stk_error_from_errno(os_errno), os_errno, "opening");
    listing->path_bytes = bytes;
    listing->list->root_bytes = (uint32_t)bytes + 1;
    return STOKER_OK;
}

int stk_pair_list_make(struct stk_pair_list *list, const stoker_storage *storage,
                       const char *folder, uint64_t *bytes_left, stoker_error *error)
{
    struct listing listing = { .list = list, .bytes_left = bytes_left, .error = error };
    char root[PATH_MAX];
    *list = (struct stk_pair_list){ .storage = storage };
    int rc = take_root(&listing, storage, folder);
    if (rc != STOKER_OK)
        return rc;
    memcpy(root, listing.path, listing.path_bytes + 1);
    rc = stk_storage_enter(&listing.root, storage, root, error);
    if (rc != STOKER_OK)
        return rc;
    rc = list_folder(&listing);
    stk_storage_leave(&listing.root);
    if (rc == STOKER_OK)
        rc = sort_files(&listing);
    if (rc != STOKER_OK)
        stk_pair_list_free(list);
    return rc;
}

/* Add the file `path`, behind the working directory if it is relative, which takes the first
 * `here_bytes` bytes. */
static int add_path(struct listing *listing, const char *path, size_t here_bytes)
{
    stoker_object object;
    const size_t before = path[0] == '/' ? 0 : here_bytes;
    const int bytes = snprintf(listing->path + before, sizeof(listing->path) - before, "%s", path);
    if (bytes < 0 || (size_t)bytes >= sizeof(listing->path) - before)
        return fail_listing(listing, STOKER_ELIMIT, 0, "a path is too long");
    listing->path_bytes = before + (size_t)bytes;
    const int rc = stk_storage_look(&stk_storage_local, listing->path, &object, listing->error);
    if (rc != STOKER_OK)
        return rc;
    if (object.kind == STOKER_OBJECT_KIND_FOLDER)
        return fail_listing(listing, STOKER_EISDIR, 0, "a file is needed");
    if (object.kind != STOKER_OBJECT_KIND_FILE)
        return fail_listing(listing, STOKER_EFORMAT, 0, "it is no regular file");
    return add_file(listing, &object);
}

int stk_pair_list_of(struct stk_pair_list *list, const char *const *paths, uint64_t count,
                     uint64_t *bytes_left, stoker_error *error)
{
    struct listing listing = { .list = list, .bytes_left = bytes_left, .error = error };
    char here[PATH_MAX];
    size_t here_bytes = 0;
    *list = (struct stk_pair_list){ .storage = &stk_storage_local };
    if (getcwd(here, sizeof(here) - 1) != NULL) {
        here_bytes = strlen(here);
        if (here_bytes > 1) /* not the root */
            here[here_bytes++] = '/';
    }
    int rc = STOKER_OK;
    for (uint64_t i = 0; rc == STOKER_OK && i < count; i++) {
        listing.path[0] = '\0';
        if (paths[i] == NULL || paths[i][0] == '\0')
            rc = fail_listing(&listing, STOKER_EINVAL, 0, "a path is missing or empty");
        else {
            memcpy(listing.path, here, here_bytes);
            rc = add_path(&listing, paths[i], here_bytes);
        }
    }
    if (rc != STOKER_OK)
        stk_pair_list_free(list);
    return rc;
}

void stk_pair_list_free(struct stk_pair_list *list)
{
    stk_free(list->files);
    stk_free(list->paths);
    *list = (struct stk_pair_list){ .files = NULL };
}
