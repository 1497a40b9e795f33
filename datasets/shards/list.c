/* list.c - list the shards of a folder. */
#include "datasets/shards/set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool stk_shard_list_takes(const char *name)
{
    const size_t length = strlen(name);
    return length > 4 && name[0] != '.' && strcmp(name + length - 4, ".stk") == 0;
}

/* A list in the making. */
struct listing {
    struct stk_shard_list *list;
    const char *directory;
};

static int add_path(struct stk_shard_list *list, const char *directory, const char *name)
{
    if (list->count == STK_SHARDS_MAX)
        return STOKER_ELIMIT;
    char **paths = stk_array_grow(list->paths, sizeof(*paths), list->count, &list->capacity, 1);
    if (paths == NULL)
        return STOKER_ENOMEM;
    list->paths = paths;
    const size_t bytes = strlen(directory) + strlen(name) + 2;
    char *path = stk_calloc(bytes, 1);
    if (path == NULL)
        return STOKER_ENOMEM;
    (void)snprintf(path, bytes, "%s/%s", directory, name);
    list->paths[list->count++] = path;
    return STOKER_OK;
}

static int add_listed(void *context, struct stk_listed *entry)
{
    const struct listing *listing = context;
    if (!stk_shard_list_takes(entry->object.name))
        return STOKER_OK;
    return add_path(listing->list, listing->directory, entry->object.name);
}

int stk_shard_list_number(struct stk_shard_list *list, const char *directory, uint32_t count)
{
    char name[32];
    int rc = STOKER_OK;
    while (rc == STOKER_OK && list->count < count) {
        (void)snprintf(name, sizeof(name), "shard-%06" PRIu32 ".stk", list->count);
        rc = add_path(list, directory, name);
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int stk_shard_list_make(struct stk_shard_list *list, const stoker_storage *storage,
                        const char *directory, stoker_error *error)
{
    struct stk_storage_folder folder;
    const struct listing listing = { .list = list, .directory = directory };
    stoker_error said = { .code = STOKER_OK };
    *list = (struct stk_shard_list){ 0 };
    int rc = stk_storage_enter(&folder, storage, directory, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_storage_list(&folder, ".", "", add_listed, (void *)&listing, &said);
    stk_storage_leave(&folder);
    list->numbered = rc == STOKER_ENOTSUP;
    if (list->numbered)
        rc = stk_shard_list_number(list, directory, 1);
    if (rc == STOKER_OK && list->count == 0)
        rc = STOKER_EEMPTY;
    if (rc == STOKER_OK) {
        qsort(list->paths, list->count, sizeof(*list->paths), by_name);
        return rc;
    }
    stk_shard_list_free(list);
    if (said.code != rc)
        return stk_refuse_file(error, rc, directory, STOKER_NO_OFFSET, "files *.stk");
    if (error != NULL)
        *error = said;
    return rc;
}

void stk_shard_list_free(struct stk_shard_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        stk_free(list->paths[i]);
    stk_free(list->paths);
    *list = (struct stk_shard_list){ 0 };
}
