/* from_files.c - stoker_dataset_from_files(): check the caller's files, then open them as folder:
 * does. */
#include <stoker/files.h>

#include <stdio.h>
#include <string.h>

#include "datasets/folder/pairs.h"
#include "loader/base/struct_size.h"

/* All lists, as this version knows them: the caller's structs may be shorter or longer. */
static int read_lists(stoker_files *out, const stoker_files *given, uint32_t count,
                      stoker_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        const void *list = (const uint8_t *)given + i * given->struct_size;
        if (!stk_struct_fits(list, STK_SIZE_UP_TO(stoker_files, channels), sizeof(*out)) ||
            ((const stoker_files *)list)->struct_size != given->struct_size)
            return stk_refuse_spec(error, STOKER_EINVAL,
                                   "files: struct_size is not set, or a struct has members that "
                                   "this version does not know: start from STOKER_FILES_INIT");
        out[i] = (stoker_files)STOKER_FILES_INIT;
        stk_struct_read(&out[i], sizeof(out[i]), list, given->struct_size);
        if (out[i].name == NULL || out[i].paths == NULL || out[i].paths[0] == NULL ||
            strlen(out[i].name) >= STOKER_FIELD_NAME_BYTES)
            return stk_refuse_spec(error, STOKER_EINVAL,
                                   "files: a list needs paths, and a name of 1 to 63 bytes");
    }
    return STOKER_OK;
}

int stoker_dataset_from_files(stoker_dataset **out, const stoker_files *files, uint32_t file_count,
                              const stoker_array *arrays, uint32_t array_count, uint64_t count,
                              const stoker_arrays_options *options, stoker_error *error)
{
    stoker_files lists[STOKER_FILES_MAX];
    struct stk_array_set *beside = NULL;
    if (out == NULL || files == NULL || file_count == 0 || file_count > STOKER_FILES_MAX)
        return stk_refuse_spec(error, STOKER_EINVAL, "files: 1 to 32 lists are needed");
    if ((arrays == NULL && array_count > 0) || array_count > STOKER_FIELDS_MAX - file_count)
        return stk_refuse_spec(
            error, STOKER_EINVAL,
            "files: files and arrays are more than 128 fields, or arrays is NULL");
    int rc = stk_array_set_read(&beside, arrays, array_count, count, options, error);
    if (rc != STOKER_OK)
        return rc;
    stk_array_set_plan(beside, true);
    rc = read_lists(lists, files, file_count, error);
    if (rc != STOKER_OK) {
        stk_array_set_free(beside);
        return rc;
    }
    const struct stk_folder_files given = {
        .files = lists, .file_count = file_count, .count = count, .beside = beside
    };
    rc = stk_folder_files_open(out, &given, error);
    if (rc == STOKER_OK) { /* the data set owns the set now: from here on it may be called */
        const stoker_arrays_options chosen = stk_arrays_options_read(options);
        beside->release = chosen.destroy;
        beside->context = chosen.context;
    }
    return rc;
}
