/* list.c - list the shards of a folder. */
#include "datasets/shards/set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool stk_shard_list_takes(const char *name)
{
    const size_t length = strlen(name);
    return length > 4 && name[0] != '.' && strcmp(name + length - 4, ".stk") == 0;
}

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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int stk_shard_list_make(struct stk_shard_list *list, const char *directory, stoker_error *error)
{
    struct stk_place place = stk_at(directory, STOKER_NO_OFFSET);
    *list = (struct stk_shard_list){ 0 };
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        place.os_errno = errno;
        return stk_error_set(error, stk_error_from_errno(errno), STOKER_STAGE_OPEN, &place,
                             "shards");
    }
    int rc = STOKER_OK;
    const struct dirent *entry;
    while (rc == STOKER_OK && (errno = 0, entry = readdir(stream)) != NULL) {
        if (stk_shard_list_takes(entry->d_name))
            rc = add_path(list, directory, entry->d_name);
    }
    place.os_errno = rc == STOKER_OK ? errno : 0;
    closedir(stream);
    if (rc == STOKER_OK && place.os_errno != 0)
        rc = stk_error_from_errno(place.os_errno);
    if (rc == STOKER_OK && list->count == 0)
        rc = STOKER_EEMPTY;
    if (rc != STOKER_OK) {
        stk_shard_list_free(list);
        return stk_error_set(error, rc, STOKER_STAGE_OPEN, &place, "files *.stk");
    }
    qsort(list->paths, list->count, sizeof(*list->paths), by_name);
    return STOKER_OK;
}

void stk_shard_list_free(struct stk_shard_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        stk_free(list->paths[i]);
    stk_free(list->paths);
    *list = (struct stk_shard_list){ 0 };
}
