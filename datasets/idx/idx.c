/* idx.c - "idx:SAMPLES[,LABELS]": any IDX tensor, plain or gzip, with or without labels.
 *
 *   plain   sample i = row_bytes at header_bytes + i x row_bytes of file 0
 *   gzip    the same place in memory, where the file was unpacked at open
 *
 * Labels lie in memory, one byte each if they have one byte in the file.
 */

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "datasets/formats.h"
#include "datasets/gzip.h"
#include "datasets/idx/file.h"
#include "datasets/parameters.h"
#include "datasets/source.h"
#include "loader/base/bytes.h"
#include "loader/base/memory/memory.h"
#include "loader/codec/big_endian.h"

enum { CLASSES_MAX = 65536 };

struct idx {
    struct stk_idx_file images;
    const stoker_codec *codec; /* NULL = raw */

    struct stk_region label_memory; /* not mapped: no labels */
    const uint8_t *labels_small;    /* uint8 labels, or NULL */
    const int64_t *labels_wide;     /* all other integers, or NULL */
    uint32_t class_count;           /* 0 = unknown */
};

/* ---- labels --------------------------------------------------------------------- */

static bool is_integer(stoker_dtype dtype)
{
    return dtype == STOKER_DTYPE_UINT8 || dtype == STOKER_DTYPE_INT8 ||
           dtype == STOKER_DTYPE_INT16 || dtype == STOKER_DTYPE_INT32;
}

static int64_t load_label(const uint8_t *at, stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_INT8:
        return (int8_t)at[0];
    case STOKER_DTYPE_INT16:
        return (int16_t)stk_load_be16(at);
    default:
        assert(dtype == STOKER_DTYPE_INT32);
        return (int32_t)stk_load_be32(at);
    }
}

/* Labels 0..n-1 make n classes; a negative or a huge one is no class number. */
static uint32_t classes_of(const struct idx *idx, uint64_t count)
{
    int64_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t label = idx->labels_small != NULL ? idx->labels_small[i] : idx->labels_wide[i];
        if (label < 0)
            return 0;
        if (label > largest)
            largest = label;
    }
    return largest < CLASSES_MAX ? (uint32_t)largest + 1 : 0;
}

/* Put the stored labels of an open file into idx->label_memory. */
static int take_labels(struct idx *idx, struct stk_idx_file *file, uint64_t max_bytes,
                       stoker_error *error)
{
    const struct stk_idx_header *header = &file->header;
    const uint64_t count = header->lengths[0];
    const size_t step = stoker_dtype_bytes(header->dtype);
    const size_t kept_bytes =
        (size_t)count * (step == 1 && header->dtype == STOKER_DTYPE_UINT8 ? 1 : 8);
    const size_t stored_bytes = (size_t)count * step;
    if (kept_bytes > max_bytes)
        return stk_refuse_file(error, STOKER_ELIMIT, file->path, STOKER_NO_OFFSET,
                               "labels take %zu bytes, at most %llu are allowed", kept_bytes,
                               (unsigned long long)max_bytes);
    if (stk_region_map(&idx->label_memory, kept_bytes) != STOKER_OK)
        return stk_refuse_file(error, STOKER_ENOMEM, file->path, STOKER_NO_OFFSET,
                               "labels, %zu bytes", kept_bytes);

    /* Stored labels go to the end of the memory, so that widening front to back never
     * overwrites one that is still to be read. */
    uint8_t *stored = (uint8_t *)idx->label_memory.base + (kept_bytes - stored_bytes);
    if (file->unpacked.base != NULL) {
        memcpy(stored, (uint8_t *)file->unpacked.base + header->header_bytes, stored_bytes);
    } else {
        int rc = stk_source_read(&file->source, stored, stored_bytes, header->header_bytes, error);
        if (rc != STOKER_OK)
            return rc;
    }
    if (kept_bytes == count) {
        idx->labels_small = idx->label_memory.base;
        return STOKER_OK;
    }
    int64_t *wide = idx->label_memory.base;
    for (uint64_t i = 0; i < count; i++)
        wide[i] = load_label(stored + i * step, header->dtype);
    idx->labels_wide = wide;
    return STOKER_OK;
}

static int check_labels(const struct idx *idx, const struct stk_idx_file *file, stoker_error *error)
{
    struct stk_place place = stk_at(file->path, 2);
    if (file->header.rank != 1 || !is_integer(file->header.dtype))
        return stk_error_set(error, STOKER_EFORMAT, STOKER_STAGE_OPEN, &place,
                             "labels must be integers on one axis, these are %s on %u",
                             stoker_dtype_name(file->header.dtype), file->header.rank);
    place.offset = 4;
    if (file->header.lengths[0] != idx->images.header.lengths[0])
        return stk_error_set(error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                             "%u labels for the %u samples of %s", file->header.lengths[0],
                             idx->images.header.lengths[0], idx->images.path);
    return STOKER_OK;
}

static int open_labels(struct idx *idx, const char *path, const stoker_dataset_options *options,
                       stoker_error *error)
{
    struct stk_idx_file file;
    int rc = stk_idx_file_open(&file, path, options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = check_labels(idx, &file, error);
    if (rc == STOKER_OK)
        rc = take_labels(idx, &file, options->max_bytes, error);
    if (rc == STOKER_OK)
        idx->class_count = classes_of(idx, file.header.lengths[0]);
    stk_idx_file_close(&file);
    return rc;
}

/* ---- callbacks ------------------------------------------------------------------ */

/* Set is_image from dtype, rank and shape of a row: uint8 with two axes is a gray image and gets a
 * third axis; uint8 with three axes, the last of 1..4, is an image. */
static void find_image(stoker_dataset_info *info)
{
    if (info->dtype == STOKER_DTYPE_UINT8 && info->rank == 2)
        info->shape[info->rank++] = 1;
    info->is_image = info->dtype == STOKER_DTYPE_UINT8 && info->rank == 3 && info->shape[2] <= 4;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct idx *idx = self;
    const struct stk_idx_header *header = &idx->images.header;
    const bool in_file = idx->images.unpacked.base == NULL;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(stoker_dataset_info),
        .count = header->lengths[0],
        .dtype = header->dtype,
        .rank = header->rank - 1,
        .label_dtype = idx->label_memory.base != NULL ? STOKER_DTYPE_INT64 : STOKER_DTYPE_NONE,
        .class_count = idx->class_count,
        .file_count = in_file ? 1 : 0,
        .encoded_bytes_max = in_file ? header->row_bytes : 0,
        .dense = in_file && idx->codec == NULL,
    };
    if (!in_file && idx->codec == NULL)
        out->rows = (const uint8_t *)idx->images.unpacked.base + header->header_bytes;
    for (uint32_t axis = 0; axis < out->rank; axis++)
        out->shape[axis] = header->lengths[axis + 1];
    find_image(out);
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct idx *idx = self;
    int64_t *to = out;
    if (idx->labels_small != NULL)
        for (uint32_t i = 0; i < count; i++)
            to[i] = idx->labels_small[ids[i]];
    else if (idx->labels_wide != NULL)
        for (uint32_t i = 0; i < count; i++)
            to[i] = idx->labels_wide[ids[i]];
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct idx *idx = self;
    const uint8_t *memory = idx->images.unpacked.base;
    const uint64_t row_bytes = idx->images.header.row_bytes;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < idx->images.header.lengths[0]);
        uint64_t offset = idx->images.header.header_bytes + ids[i] * row_bytes;
        out[i] = (stoker_part){
            .extent = { .memory = memory == NULL ? NULL : memory + offset,
                        .offset = offset,
                        .bytes = (uint32_t)row_bytes,
                        .file = 0 },
            .codec = idx->codec,
        };
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct idx *idx = self;
    if (file != 0 || idx->images.source.storage == NULL)
        return STOKER_EINVAL;
    *out = stk_source_file(&idx->images.source);
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct idx *idx = self;
    stk_idx_file_close(&idx->images);
    stk_region_unmap(&idx->label_memory);
    stk_free(idx);
}

#define IDX_OPS(word)                                                                              \
    {                                                                                              \
        .struct_size = sizeof(stoker_dataset_ops), .name = (word), .describe = describe,           \
        .locate = locate, .values = values, .file = file_of, .destroy = destroy                    \
    }

static const stoker_dataset_ops idx_ops = IDX_OPS("idx");
static const stoker_dataset_ops mnist_ops = IDX_OPS("mnist");

/* ---- open ----------------------------------------------------------------------- */

static int open_both(struct idx *idx, const char *images_path, const char *labels_path,
                     const stoker_dataset_options *options, stoker_error *error)
{
    int rc = stk_idx_file_open(&idx->images, images_path, options, error);
    if (rc != STOKER_OK)
        return rc;
    idx->codec = stk_codec_big_endian(stoker_dtype_bytes(idx->images.header.dtype));
    if (labels_path == NULL)
        return STOKER_OK;
    return open_labels(idx, labels_path, options, error);
}

static int open_pair(stoker_dataset **out, const stoker_dataset_ops *ops, const char *images_path,
                     const char *labels_path, const stoker_dataset_options *options,
                     stoker_error *error)
{
    struct stk_place place = stk_at(images_path, STOKER_NO_OFFSET);
    struct idx *idx = stk_calloc(1, sizeof(*idx));
    if (idx == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, NULL);
    idx->images.source.fd = -1;
    int rc = open_both(idx, images_path, labels_path, options, error);
    if (rc == STOKER_OK) {
        rc = stoker_dataset_create(out, ops, idx, error);
        if (rc != STOKER_OK)
            (void)stk_error_add_path(error, rc, images_path);
    }
    if (rc != STOKER_OK)
        destroy(idx);
    return rc;
}

/* ---- the spec ------------------------------------------------------------------- */

static int open_idx(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    int rc = stk_spec_no_parameters(options->storage, rest, "idx", error);
    if (rc != STOKER_OK)
        return rc;
    if (options->split != NULL)
        return stk_refuse_spec(error, STOKER_EINVAL,
                               "split \"%s\": idx names its files and has no splits",
                               options->split);
    const struct stk_spec spec = stk_spec_split(options->storage, rest, ',');
    if (spec.name_bytes == 0 || (spec.after != NULL && spec.after[0] == '\0'))
        return stk_refuse_spec(error, STOKER_ESPEC,
                               "\"idx:%s\": a file name is empty; write idx:SAMPLES or "
                               "idx:SAMPLES,LABELS",
                               rest);
    if (spec.after == NULL)
        return open_pair(out, &idx_ops, rest, NULL, options, error);

    char *images_path = stk_calloc(spec.name_bytes + 1, 1);
    if (images_path == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "the path");
    memcpy(images_path, rest, spec.name_bytes);
    rc = open_pair(out, &idx_ops, images_path, spec.after, options, error);
    stk_free(images_path);
    return rc;
}

/* Returns true for a file that starts like IDX, or like gzip, which no other format uses. */
static bool recognize_idx(const stoker_storage *storage, const char *path)
{
    uint8_t begin[4] = { 0 };
    return stk_source_begins(storage, path, begin, sizeof(begin)) &&
           (stk_gzip_magic(begin, sizeof(begin)) ||
            (begin[0] == 0 && begin[1] == 0 && begin[2] >= 0x08 && begin[2] <= 0x0E));
}

/* ---- mnist ---------------------------------------------------------------------- */

/* "mnist:DIR": the four files of MNIST, or of a data set with the same names.
 *
 *   DIR/{train,t10k}-images{-,.}idx3-ubyte[.gz]
 *   DIR/{train,t10k}-labels{-,.}idx1-ubyte[.gz]
 *
 * A plain file is preferred to its .gz. */
struct mnist_part {
    const char *half; /* "train" or "t10k" */
    const char *what; /* "images" or "labels" */
    const char *kind; /* "idx3" or "idx1" */
};

/* Write the path of the first spelling that exists. Returns 0, or the code of looking for the last
 * one; path then holds the spelling for the message. */
static int find_spelling(char path[PATH_MAX], const stoker_storage *storage, const char *directory,
                         const struct mnist_part *part, stoker_error *error)
{
    static const char *const suffixes[] = { "", ".gz" };
    static const char *const separators[] = { "-", "." };
    stoker_object object;
    for (int i = 0; i < 4; i++) {
        int length = snprintf(path, PATH_MAX, "%s/%s-%s%s%s-ubyte%s", directory, part->half,
                              part->what, separators[i % 2], part->kind, suffixes[i / 2]);
        if (length < 0 || length >= PATH_MAX)
            return stk_refuse_file(error, STOKER_ELIMIT, directory, STOKER_NO_OFFSET,
                                   "mnist: the name is too long");
        if (stk_storage_look(storage, path, &object, error) == STOKER_OK)
            return STOKER_OK;
    }
    (void)snprintf(path, PATH_MAX, "%s/%s-%s-%s-ubyte", directory, part->half, part->what,
                   part->kind);
    return error->code;
}

static int find_mnist(char path[PATH_MAX], const stoker_storage *storage, const char *directory,
                      const struct mnist_part *part, stoker_error *error)
{
    stoker_error said;
    const int rc = find_spelling(path, storage, directory, part, &said);
    if (rc != STOKER_ENOENT) {
        if (rc != STOKER_OK && error != NULL)
            *error = said;
        return rc;
    }
    (void)stk_refuse_file(error, rc, path, STOKER_NO_OFFSET,
                          "mnist: not found, with or without .gz; datasets/fetch-mnist.sh "
                          "(installed in share/stoker) downloads it");
    if (error != NULL)
        error->os_errno = said.os_errno; /* which the message says itself */
    return rc;
}

/* The prefix of a split's file names, or NULL. */
static const char *half_of_split(const char *split)
{
    if (split == NULL || strcmp(split, "train") == 0)
        return "train";
    return strcmp(split, "test") == 0 ? "t10k" : NULL;
}

static int open_mnist(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                      stoker_error *error)
{
    if (rest[0] == '\0')
        return stk_refuse_spec(error, STOKER_ESPEC, "\"mnist:\" names no directory");
    int rc = stk_spec_no_parameters(options->storage, rest, "mnist", error);
    if (rc != STOKER_OK)
        return rc;
    const char *half = half_of_split(options->split);
    if (half == NULL)
        return stk_refuse_spec(error, STOKER_EINVAL,
                               "split \"%s\": mnist has \"train\" and \"test\"", options->split);
    char images_path[PATH_MAX];
    char labels_path[PATH_MAX];
    const struct mnist_part images = { half, "images", "idx3" };
    const struct mnist_part labels = { half, "labels", "idx1" };
    rc = find_mnist(images_path, options->storage, rest, &images, error);
    if (rc == STOKER_OK)
        rc = find_mnist(labels_path, options->storage, rest, &labels, error);
    if (rc == STOKER_OK)
        rc = open_pair(out, &mnist_ops, images_path, labels_path, options, error);
    return rc;
}

/* A directory with the images of either half. */
static bool recognize_mnist(const stoker_storage *storage, const char *path)
{
    char found[PATH_MAX];
    stoker_error said;
    return find_spelling(found, storage, path, &(struct mnist_part){ "train", "images", "idx3" },
                         &said) == 0 ||
           find_spelling(found, storage, path, &(struct mnist_part){ "t10k", "images", "idx3" },
                         &said) == 0;
}

const struct stk_format stk_format_idx = { .name = "idx",
                                           .about =
                                               "idx:IMAGES[,LABELS]\tone IDX file, read in place",
                                           .open = open_idx,
                                           .recognize = recognize_idx };

const struct stk_format stk_format_mnist = { .name = "mnist",
                                             .about =
                                                 "mnist:DIR\tthe MNIST files in DIR, packed or not",
                                             .open = open_mnist,
                                             .recognize = recognize_mnist };
