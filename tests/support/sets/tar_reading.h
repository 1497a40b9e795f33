/* tar_reading.h - opening archives that lie in memory, and looking at what came of it. */
#ifndef STK_TEST_TAR_READING_H
#define STK_TEST_TAR_READING_H

#include "datasets/tar/index.h"
#include "support/files/tar_files.h"
#include "support/sets/read_row.h"

/* What tar: without fields= wishes for, in an initializer. */
#define STK_ARCHIVE_IMAGES                                                                         \
    .storage = &stk_storage_local, .fields = { { .extensions = "png;jpg;jpeg;webp" } },            \
    .field_count = 1, .takes_labels = true

#define STK_ARCHIVE_MEMORY_BYTES ((uint64_t)1 << 20) /* that an index may take */

static inline int stk_archive_open(stoker_dataset **out, const struct stk_archive *from,
                                   const char *parameters, stoker_error *error)
{
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = STK_ARCHIVE_MEMORY_BYTES };
    struct stk_memory_file file = stk_memory_file(from->at, from->size);
    char spec[200];
    (void)snprintf(spec, sizeof(spec), "tar:%s%s", file.path, parameters);
    const int rc = stoker_dataset_open(out, spec, &options, error);
    close(file.fd);
    return rc;
}

/* The index alone: it reports what was skipped. */
static inline int stk_archive_index(struct stk_tar_index *out, const struct stk_archive *from,
                                    bool keep_truncated, stoker_error *error)
{
    const struct stk_tar_wish wish = { STK_ARCHIVE_IMAGES, .bytes_max = STK_ARCHIVE_MEMORY_BYTES,
                                       .entries_max = 1000, .keep_truncated = keep_truncated };
    struct stk_memory_file file = stk_memory_file(from->at, from->size);
    struct stk_name_list names;
    int rc =
        stk_name_list_make(&names, &stk_storage_local, "tar", file.path, strlen(file.path), error);
    if (rc == STOKER_OK)
        rc = stk_tar_index_build(out, &names, &wish, error);
    stk_name_list_free(&names);
    close(file.fd);
    return rc;
}

static inline void stk_archive_check_row(const stoker_dataset *dataset, uint64_t sample,
                                         uint64_t id, int64_t label)
{
    uint8_t row[STK_FOLDER_ROW];
    uint8_t expected[STK_FOLDER_ROW];
    stoker_label found = { .index = 0 };
    stoker_error error = { .message = "" };
    stk_folder_row(id, expected);
    cr_assert_eq(stk_read_row(dataset, sample, row, sizeof(row), &found, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_arr_eq(row, expected, sizeof(row));
    cr_assert_eq(found.index, label);
}

/* Open the archive: samples 0.. are ids 0.., with labels 10 + id. */
static inline void stk_archive_check_samples(const struct stk_archive *from, const char *parameters,
                                             uint64_t count)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_archive_open(&dataset, from, parameters, &error), STOKER_OK, "%s",
                 error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, count);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(info->class_count, 10 + count);
    for (uint64_t id = 0; id < count; id++)
        stk_archive_check_row(dataset, id, id, 10 + (int64_t)id);
    stoker_dataset_close(&dataset);
}

static inline void stk_archive_check_refused(const struct stk_archive *from, const char *parameters,
                                             int code, const char *told)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int rc = stk_archive_open(&dataset, from, parameters, &error);
    cr_assert_eq(rc, code, "%s: %s", stoker_error_name(rc), error.message);
    cr_assert_null(dataset);
    cr_assert_eq(error.code, rc);
    cr_assert_not_null(strstr(error.message, told), "\"%s\" is not in: %s", told, error.message);
}

static inline void stk_archive_needs_png(void)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
}

#endif
