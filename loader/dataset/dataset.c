/* dataset.c - the data set object: create, query, close.
 *
 *   describe(), field() --checked once--> info, fields --> any number of loaders
 *
 * The callbacks' answers are checked here, once, so that no later stage must.
 */
#include "loader/dataset/dataset.h"
#include "loader/base/struct_size.h"

#include <fcntl.h>
#include <stoker/storage.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/dataset/format.h"

/* ---- answers of the callbacks --------------------------------------------------- */

static int refuse_set(stoker_error *error, int code, const char *name, const char *what)
{
    return stk_refuse_spec(error, code, "%s: %s", name, what);
}

/* A class index is an int64, so a set that describes classes without such a label contradicts
 * itself. */
static bool label_is_consistent(const stoker_dataset_ops *ops, const stoker_dataset_info *info)
{
    if (ops->field != NULL || info->label_dtype == STOKER_DTYPE_INT64)
        return true;
    return info->class_count == 0 &&
           (info->label_dtype == STOKER_DTYPE_FLOAT32 || info->label_dtype == STOKER_DTYPE_NONE);
}

/* A whole file is read with one byte more than expected, which needs room. */
static bool paths_are_consistent(const stoker_dataset_info *info)
{
    if (!info->has_paths)
        return true;
    const bool has_directory =
        info->directory >= 0 || info->directory == AT_FDCWD ||
        (info->directory == STOKER_DIRECTORY_OF_FILE && info->file_count > 0);
    return has_directory && info->encoded_bytes_max > 0;
}

static bool files_are_consistent(const stoker_dataset_ops *ops, const stoker_dataset_info *info,
                                 size_t row_bytes)
{
    uint64_t end;
    if ((info->dense || info->rows != NULL) &&
        __builtin_mul_overflow(info->count, (uint64_t)row_bytes, &end))
        return false;
    if (!paths_are_consistent(info))
        return false;
    if (info->file_count == 0)
        return !info->dense;
    if (ops->file == NULL || info->encoded_bytes_max == 0)
        return false;
    return !info->dense || (info->encoded_bytes_max == row_bytes && !info->has_paths);
}

static int check_parts(const stoker_dataset *dataset, stoker_error *error)
{
    const stoker_dataset_info *info = &dataset->info;
    const bool reads = info->file_count > 0 || info->has_paths;
    if (reads &&
        info->encoded_bytes_max >= UINT32_MAX) /* a worker's reads and their buffers: 32 bits */
        return stk_refuse_spec(
            error, STOKER_ELIMIT, "%s: encoded_bytes_max is %llu, of which this version reads %u",
            dataset->ops->name, (unsigned long long)info->encoded_bytes_max, UINT32_MAX - 1);
    const bool one_row = info->part_count == 1 && dataset->part_fields[0].count == 1 &&
                         !dataset->fields[0].info.varies && dataset->fields[0].info.part == 0;
    if ((one_row || (!info->dense && info->rows == NULL)) &&
        files_are_consistent(dataset->ops, info, dataset->row_bytes))
        return STOKER_OK;
    return refuse_set(
        error, STOKER_EINVAL, dataset->ops->name,
        "file_count, encoded_bytes_max, has_paths, dense and rows contradict each other");
}

static int check_blocks(const stoker_dataset *dataset, stoker_error *error)
{
    const stoker_dataset_ops *ops = dataset->ops;
    const stoker_dataset_info *info = &dataset->info;
    uint64_t before = 0;
    if (info->block_count == 0)
        return STOKER_OK;
    if (ops->block_first == NULL || info->block_count > info->count)
        return refuse_set(error, STOKER_EINVAL, ops->name,
                          "block_count exceeds count, or there is no block_first()");
    for (uint64_t block = 0; block < info->block_count; block++) {
        const uint64_t first = ops->block_first(dataset->self, block);
        if (block == 0 ? first != 0 : first <= before || first >= info->count)
            return stk_refuse_spec(error, STOKER_EINVAL,
                                   "%s: block_first(%llu) is %llu: the first is 0, each other one "
                                   "above the last and below the %llu samples",
                                   ops->name, (unsigned long long)block, (unsigned long long)first,
                                   (unsigned long long)info->count);
        before = first;
    }
    return STOKER_OK;
}

/* ---- life ----------------------------------------------------------------------- */

static int describe(stoker_dataset *dataset, stoker_error *error)
{
    stoker_dataset_info *info = &dataset->info;
    const char *name = dataset->ops->name;
    union stk_room room;
    stk_room_init(&room, sizeof(*info));
    const int rc = dataset->ops->describe(dataset->self, (void *)&room);
    if (rc == STOKER_OK &&
        !stk_room_fits(&room, STK_SIZE_UP_TO(stoker_dataset_info, description), sizeof(*info)))
        return refuse_set(
            error, STOKER_EINVAL, name,
            "describe() changed struct_size, or set members that this version does not "
            "know");
    stk_struct_read(info, sizeof(*info), &room, room.size);
    stoker_error said;
    if (rc != STOKER_OK)
        return refuse_set(error, stk_callback_failed(rc, "describe()", &said), name, said.message);
    if (info->count == 0)
        return refuse_set(error, STOKER_EEMPTY, name,
                          "the data set holds no samples: describe() set count to 0");
    if (!label_is_consistent(dataset->ops, info))
        return refuse_set(error, STOKER_EINVAL, name,
                          "labels are int64 or float32, and only int64 ones have classes");
    return STOKER_OK;
}

/* An older, shorter table lacks its newest callbacks. */
static int copy_ops(stoker_dataset *dataset, const stoker_dataset_ops *ops, stoker_error *error)
{
    if (!stk_struct_fits(ops, STK_SIZE_UP_TO(stoker_dataset_ops, describe), sizeof(*ops)))
        return refuse_set(
            error, STOKER_EINVAL, "dataset create",
            "ops->struct_size is not set, or it has callbacks that this version does not "
            "know");
    stk_struct_read(&dataset->own, sizeof(dataset->own), ops, ops->struct_size);
    dataset->ops = &dataset->own;
    if (ops->name == NULL || ops->describe == NULL)
        return refuse_set(error, STOKER_EINVAL, "dataset create", "ops' name or describe is NULL");
    return STOKER_OK;
}

static int fill_in(stoker_dataset *dataset, const stoker_dataset_ops *ops, stoker_error *error)
{
    int rc = copy_ops(dataset, ops, error);
    if (rc == STOKER_OK)
        rc = describe(dataset, error);
    if (rc == STOKER_OK)
        rc = stk_dataset_take_fields(dataset, error);
    if (rc == STOKER_OK)
        rc = check_parts(dataset, error);
    if (rc == STOKER_OK)
        rc = check_blocks(dataset, error);
    if (rc != STOKER_OK)
        return rc;
    if (dataset->info.rows != NULL)
        dataset->part_rows = &dataset->info.rows;
    rc = stk_stamps_take(&dataset->stamps, dataset->ops, dataset->self, dataset->info.file_count);
    if (rc < 0)
        return refuse_set(error, rc, dataset->ops->name, "dataset create");
    return stk_kept_blocks_make(&dataset->kept_blocks, dataset, error);
}

int stoker_dataset_create(stoker_dataset **out, const stoker_dataset_ops *ops, void *self,
                          stoker_error *error)
{
    if (out == NULL || ops == NULL)
        return refuse_set(error, STOKER_EINVAL, "dataset create", "out or ops is NULL");
    stoker_dataset *dataset = stk_calloc(1, sizeof(*dataset));
    if (dataset == NULL)
        return refuse_set(error, STOKER_ENOMEM, ops->name, "dataset create");
    dataset->self = self;
    const int rc = fill_in(dataset, ops, error);
    if (rc == STOKER_OK) {
        atomic_init(&dataset->references, 1U);
        *out = dataset;
        return STOKER_OK;
    }
    stk_stamps_free(&dataset->stamps);
    stk_dataset_free_fields(dataset);
    stk_free(dataset);
    return rc;
}

void stk_dataset_set_part_rows(stoker_dataset *dataset, const void *const *rows)
{
    dataset->part_rows = rows;
}

void stk_dataset_set_recalls(stoker_dataset *dataset)
{
    dataset->recalls = true;
}

stoker_dataset *stoker_dataset_share(stoker_dataset *dataset)
{
    if (dataset != NULL)
        atomic_fetch_add_explicit(&dataset->references, 1U, memory_order_relaxed);
    return dataset;
}

void stoker_dataset_close(stoker_dataset **dataset)
{
    if (dataset == NULL || *dataset == NULL)
        return;
    stoker_dataset *const closing = *dataset;
    *dataset = NULL;
    /* Release and acquire: the last owner frees what the others wrote. */
    if (atomic_fetch_sub_explicit(&closing->references, 1U, memory_order_acq_rel) > 1)
        return;
    if (closing->ops->destroy != NULL)
        closing->ops->destroy(closing->self);
    stoker_storage_close(&closing->storage);
    stk_kept_blocks_free(&closing->kept_blocks);
    stk_stamps_free(&closing->stamps);
    stk_dataset_free_fields(closing);
    stk_free(closing);
}

const stoker_dataset_info *stoker_dataset_get_info(const stoker_dataset *dataset)
{
    return dataset == NULL ? NULL : &dataset->info;
}

const char *stoker_dataset_name(const stoker_dataset *dataset)
{
    return dataset == NULL ? NULL : dataset->ops->name;
}

const char *stoker_dataset_class_name(const stoker_dataset *dataset, uint32_t field, uint32_t index)
{
    const stoker_field_info *info = stoker_dataset_field(dataset, field);
    return info == NULL || index >= info->class_count || dataset->ops->class_name == NULL
               ? NULL
               : dataset->ops->class_name(dataset->self, field, index);
}
