/* dataset.c - the data set object: create, query, close, and read a single sample.
 *
 *   describe() --checked once--> info, row_bytes --> any number of loaders
 *
 * The callbacks' answers are checked here, once, so that no later stage must.
 */
#include "loader/api/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "loader/base/open_beneath.h"
#include "loader/base/pread.h"
#include "loader/codec/raw.h"

/* ---- answers of describe() ------------------------------------------------------- */

/* Bytes of a row; 0 if an axis is empty, the type unknown or the product too large. */
static size_t bytes_of_row(const stoker_dataset_info *info)
{
    size_t bytes = stoker_dtype_bytes(info->dtype);
    for (uint32_t axis = 0; axis < info->rank; axis++) {
        if (info->shape[axis] > SIZE_MAX / 2 ||
            __builtin_mul_overflow(bytes, (size_t)info->shape[axis], &bytes))
            return 0;
    }
    return bytes <= SIZE_MAX / 2 ? bytes : 0;
}

static bool labels_are_consistent(const stoker_dataset_info *info)
{
    switch (info->label_dtype) {
    case STOKER_DTYPE_INT64:
        return true;
    case STOKER_DTYPE_FLOAT32:
    case STOKER_DTYPE_NONE:
        return info->class_count == 0;
    default:
        return false;
    }
}

/* A whole file is read with one byte more than expected, which needs room. */
static bool paths_are_consistent(const stoker_dataset_info *info)
{
    if (!info->has_paths)
        return true;
    const bool has_directory =
        info->directory >= 0 || info->directory == AT_FDCWD ||
        (info->directory == STOKER_DIRECTORY_OF_FILE && info->file_count > 0);
    return has_directory && info->encoded_bytes_max > 0 && info->encoded_bytes_max < UINT32_MAX;
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

static int check_info(const stoker_dataset_ops *ops, const stoker_dataset_info *info,
                      size_t *row_bytes)
{
    if (info->count == 0)
        return STOKER_EEMPTY;
    if (info->rank >= STOKER_RANK_MAX || (info->is_image && info->rank != 3))
        return STOKER_EINVAL;
    *row_bytes = bytes_of_row(info);
    if (*row_bytes == 0 || !labels_are_consistent(info))
        return STOKER_EINVAL;
    return files_are_consistent(ops, info, *row_bytes) ? STOKER_OK : STOKER_EINVAL;
}

/* ---- life ----------------------------------------------------------------------- */

static int refuse(stoker_error *error, int code, const char *name, const char *what)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const int rc = code < 0 ? code : STOKER_EINVAL; /* callbacks have no normal stop */
    return stk_error_set(error, rc, STOKER_STAGE_OPEN, &nowhere, "%s: %s", name, what);
}

int stoker_dataset_create(stoker_dataset **out, const stoker_dataset_ops *ops, void *self,
                          stoker_error *error)
{
    if (out == NULL || ops == NULL || ops->name == NULL || ops->describe == NULL ||
        ops->locate == NULL)
        return refuse(error, STOKER_EINVAL, "dataset create",
                      "out, ops, or its name, describe or locate is NULL");

    stoker_dataset_info info = { 0 };
    size_t row_bytes = 0;
    int rc = ops->describe(self, &info);
    if (rc != STOKER_OK)
        return refuse(error, rc, ops->name, "describe() failed");
    rc = check_info(ops, &info, &row_bytes);
    if (rc != STOKER_OK)
        return refuse(error, rc, ops->name, "the info of describe() is inconsistent");

    stoker_dataset *dataset = stk_calloc(1, sizeof(*dataset));
    rc = dataset == NULL ? STOKER_ENOMEM
                         : stk_stamps_take(&dataset->stamps, ops, self, info.file_count);
    if (rc < 0) {
        stk_free(dataset);
        return refuse(error, rc, ops->name, "dataset create");
    }
    dataset->ops = ops;
    dataset->self = self;
    dataset->info = info;
    dataset->row_bytes = row_bytes;
    atomic_init(&dataset->references, 1U);
    *out = dataset;
    return STOKER_OK;
}

stoker_dataset *stk_dataset_hold(stoker_dataset *dataset)
{
    atomic_fetch_add_explicit(&dataset->references, 1U, memory_order_relaxed);
    return dataset;
}

void stk_dataset_leak(const stoker_dataset *dataset)
{
    /* const to callers means only that the contents do not change. */
    atomic_store(&((stoker_dataset *)dataset)->leaked, true);
}

void stoker_dataset_close(stoker_dataset **dataset)
{
    if (dataset == NULL || *dataset == NULL)
        return;
    stoker_dataset *const closing = *dataset;
    *dataset = NULL;
    /* A leaked one keeps its reference, so that the views of it leak with it. Release and acquire: the last owner
     * frees what the others wrote. */
    if (atomic_load(&closing->leaked) ||
        atomic_fetch_sub_explicit(&closing->references, 1U, memory_order_acq_rel) > 1)
        return;
    if (closing->ops->destroy != NULL)
        closing->ops->destroy(closing->self);
    stk_stamps_free(&closing->stamps);
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

size_t stoker_dataset_row_bytes(const stoker_dataset *dataset)
{
    return dataset == NULL ? 0 : dataset->row_bytes;
}

const char *stoker_dataset_class_name(const stoker_dataset *dataset, uint32_t index)
{
    if (dataset == NULL || dataset->ops->class_name == NULL || index >= dataset->info.class_count)
        return NULL;
    return dataset->ops->class_name(dataset->self, index);
}

int stoker_dataset_locate(const stoker_dataset *dataset, uint64_t id, stoker_sample *out,
                          stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    if (dataset == NULL || out == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, &place,
                             "dataset or out is NULL");
    place.sample = id;
    if (id >= dataset->info.count)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, &place,
                             "the last sample is %llu",
                             (unsigned long long)dataset->info.count - 1);
    stoker_error unwanted; /* locate() always receives one */
    const int rc =
        dataset->ops->locate(dataset->self, &id, 1, out, error != NULL ? error : &unwanted);
    if (rc > 0)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, &place,
                             "locate() returned %d, neither 0 nor an error", rc);
    return rc;
}

/* ---- one sample, now ------------------------------------------------------------ */

/* Verify and decode, with a scratch made for this one call. */
static int decode_once(const stoker_codec *codec, const stoker_encoded *in, void *row,
                       size_t row_bytes, const struct stk_place *place, stoker_error *error)
{
    void *scratch = NULL;
    stoker_error reason = { 0 };
    int rc = codec->open == NULL ? STOKER_OK : codec->open(codec->self, &scratch);
    if (rc == STOKER_OK) {
        rc = codec->verify == NULL ? STOKER_OK : codec->verify(codec->self, in, &reason);
        if (rc == STOKER_OK)
            rc = codec->decode(codec->self, scratch, in, row, row_bytes, &reason);
        if (codec->close != NULL)
            codec->close(codec->self, scratch);
    }
    if (rc == STOKER_OK)
        return STOKER_OK;
    if (rc > 0)
        rc = STOKER_EINVAL; /* a codec has no normal stop */
    if (reason.message[0] == '\0')
        return stk_error_set(error, rc, STOKER_STAGE_DECODE, place, "codec %s", codec->name);
    return stk_error_set(error, rc, STOKER_STAGE_DECODE, place, "codec %s: %s", codec->name,
                         reason.message);
}

static const stoker_codec *codec_of(const stoker_sample *sample)
{
    return sample->codec == NULL ? &stk_codec_raw : sample->codec;
}

/* Read the sample from one of the data set's open files. A verified sample needs no check for a changed file. */
static int bytes_from_file(const stoker_dataset *dataset, const stoker_sample *sample, void *to,
                           struct stk_place *place, stoker_error *error)
{
    const stoker_extent *extent = &sample->extent;
    const bool verifies = sample->codec != NULL && sample->codec->verify != NULL;
    if (extent->file >= dataset->info.file_count)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, place,
                             "the extent names file %u of %u", extent->file,
                             dataset->info.file_count);
    stoker_file file = { 0 };
    int rc = dataset->ops->file(dataset->self, extent->file, &file);
    if (rc != STOKER_OK)
        return stk_error_set(error, rc < 0 ? rc : STOKER_EINVAL, STOKER_STAGE_READ, place,
                             "file %u", extent->file);
    place->path = file.path;
    place->offset = extent->offset;
    if (file.fd < 0)
        return stk_error_set(
            error, STOKER_ENOTSUP, STOKER_STAGE_READ, place,
            "file %u has no descriptor: only a loader with options.reader reads it", extent->file);
    rc = stk_pread_all(file.fd, to, extent->bytes, *place, error);
    if (rc == STOKER_OK && !verifies && !stk_stamp_holds(&dataset->stamps, extent->file))
        rc = stk_stamps_refuse(&dataset->stamps, extent->file, *place, error);
    return rc;
}

/* The directory that an extent's path starts from; -1 if there is none. */
static int directory_of(const stoker_dataset *dataset, const stoker_extent *extent)
{
    stoker_file file = { .fd = -1 };
    if (dataset->info.directory != STOKER_DIRECTORY_OF_FILE)
        return dataset->info.directory;
    if (extent->file < dataset->info.file_count &&
        dataset->ops->file(dataset->self, extent->file, &file) == STOKER_OK)
        return file.fd;
    return -1;
}

/* Read a file that holds just this sample; `to` has room for one more byte. */
static int bytes_from_path(const stoker_dataset *dataset, const stoker_extent *extent, void *to,
                           struct stk_place *place, stoker_error *error)
{
    place->path = extent->path;
    if (!dataset->info.has_paths)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, place,
                             "the data set said that it has no paths");
    const int directory = directory_of(dataset, extent);
    if (directory == -1)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, place,
                             "the extent names file %u as its directory, which is none",
                             extent->file);
    const ssize_t got =
        stk_read_all_beneath(directory, extent->path, to, (size_t)extent->bytes + 1);
    if (got < 0) {
        const bool stray = got == -EXDEV || got == -ELOOP;
        place->os_errno = (int)-got;
        return stk_error_set(error, stray ? STOKER_EACCES : stk_error_from_errno((int)-got),
                             STOKER_STAGE_READ, place, NULL);
    }
    if ((uint64_t)got != extent->bytes)
        return stk_error_set(error, STOKER_ECHANGED, STOKER_STAGE_READ, place,
                             "%s than the %u bytes it had",
                             (uint64_t)got > extent->bytes ? "longer" : "shorter", extent->bytes);
    return STOKER_OK;
}

/* Check before memory is allocated for them. */
static int check_announced(const stoker_dataset *dataset, const stoker_extent *extent,
                           struct stk_place *place, stoker_error *error)
{
    if (extent->bytes <= dataset->info.encoded_bytes_max)
        return STOKER_OK;
    place->path = extent->path;
    return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_READ, place, "%u bytes, at most %u",
                         extent->bytes, dataset->info.encoded_bytes_max);
}

/* `to` has room for one byte more. */
static int bytes_from_storage(const stoker_dataset *dataset, const stoker_sample *sample, void *to,
                              struct stk_place *place, stoker_error *error)
{
    return sample->extent.path != NULL ? bytes_from_path(dataset, &sample->extent, to, place, error)
                                       : bytes_from_file(dataset, sample, to, place, error);
}

static int row_from_storage(const stoker_dataset *dataset, const stoker_sample *sample, uint64_t id,
                            void *row, stoker_error *error)
{
    const stoker_extent *extent = &sample->extent;
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    int rc = check_announced(dataset, extent, &place, error);
    if (rc != STOKER_OK)
        return rc;
    uint8_t *encoded = stk_calloc((size_t)extent->bytes + 1, 1);
    if (encoded == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "%u bytes",
                             extent->bytes);
    rc = bytes_from_storage(dataset, sample, encoded, &place, error);
    if (rc == STOKER_OK) {
        stoker_encoded in = {
            .bytes = encoded,
            .size = extent->bytes,
            .sample = stk_codec_id(sample, id),
            .tag = sample->tag,
        };
        rc = decode_once(codec_of(sample), &in, row, dataset->row_bytes, &place, error);
    }
    stk_free(encoded);
    return rc;
}

int stoker_dataset_read(const stoker_dataset *dataset, uint64_t id, void *row, size_t row_bytes,
                        stoker_label *label, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    if (dataset == NULL || row == NULL || row_bytes < dataset->row_bytes)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "dataset or row is NULL, or row_bytes is less than a row");
    stoker_sample sample = { 0 };
    int rc = stoker_dataset_locate(dataset, id, &sample, error);
    if (rc != STOKER_OK)
        return rc;

    const stoker_extent *extent = &sample.extent;
    if (extent->memory != NULL || extent->bytes == 0) {
        place.sample = id;
        place.path = extent->memory == NULL ? extent->path : NULL;
        stoker_encoded in = {
            .bytes = extent->memory,
            .size = extent->bytes,
            .sample = stk_codec_id(&sample, id),
            .tag = sample.tag,
        };
        rc = decode_once(codec_of(&sample), &in, row, dataset->row_bytes, &place, error);
    } else {
        rc = row_from_storage(dataset, &sample, id, row, error);
    }
    if (rc == STOKER_OK && label != NULL)
        *label = sample.label;
    return rc;
}

/* ---- bytes as stored ------------------------------------------------------------ */

const char *stoker_dataset_stored_as(const stoker_dataset *dataset, uint64_t id)
{
    stoker_sample sample = { 0 };
    if (dataset == NULL || id >= dataset->info.count)
        return NULL;
    if (dataset->ops->stored_as != NULL)
        return dataset->ops->stored_as(dataset->self, id);
    if (stoker_dataset_locate(dataset, id, &sample, NULL) != STOKER_OK)
        return NULL;
    return codec_of(&sample)->name;
}

int stoker_dataset_read_stored(const stoker_dataset *dataset, uint64_t id, void *bytes,
                               size_t bytes_max, size_t *size, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    stoker_sample sample = { 0 };
    if (dataset == NULL || bytes == NULL || size == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "dataset, bytes or size is NULL");
    int rc = stoker_dataset_locate(dataset, id, &sample, error);
    if (rc != STOKER_OK)
        return rc;
    const stoker_extent *extent = &sample.extent;
    place.sample = id;
    if (bytes_max <= extent->bytes)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "bytes_max is %zu, for %u bytes and one more", bytes_max,
                             extent->bytes);
    if (extent->memory != NULL) {
        memcpy(bytes, extent->memory, extent->bytes);
    } else if (extent->bytes > 0) {
        rc = check_announced(dataset, extent, &place, error);
        if (rc == STOKER_OK)
            rc = bytes_from_storage(dataset, &sample, bytes, &place, error);
    }
    if (rc == STOKER_OK)
        *size = extent->bytes;
    return rc;
}
