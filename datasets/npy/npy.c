/* npy.c - "npy:X.npy[,Y.npy]": a NumPy array of rows and, optionally, one of labels.
 *
 *   sample i = row_bytes at header_bytes + i x row_bytes of file 0
 *
 * Little-endian rows need no codec; a codec swaps the bytes of big-endian ones. Labels are read into
 * memory at open.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "datasets/axes.h"
#include "datasets/formats.h"
#include "datasets/npy/header.h"
#include "datasets/parameters.h"
#include "datasets/source.h"
#include "loader/base/bytes.h"
#include "loader/base/memory.h"
#include "loader/codec/big_endian.h"

enum { CLASSES_MAX = 65536, LABELS_AT_ONCE = 1024 };

struct npy {
    char *path;
    struct stk_source source;
    struct stk_npy_header header;
    stoker_dtype dtype;
    const stoker_codec *codec; /* NULL = raw */

    struct stk_region label_memory; /* not mapped: no labels */
    stoker_dtype label_dtype;
    uint32_t class_count; /* 0 = unknown */
};

static int refuse(int code, const char *path, uint64_t offset, const char *what,
                  stoker_error *error)
{
    const struct stk_place place = stk_at(path, offset);
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

/* ---- one file ------------------------------------------------------------------- */

static int open_array(struct stk_source *source, struct stk_npy_header *header, const char *path,
                      stoker_error *error)
{
    uint8_t begin[STK_NPY_BEGIN_BYTES];
    int rc = stk_source_open(source, path, error);
    if (rc != STOKER_OK)
        return rc;
    const size_t size = source->size < sizeof(begin) ? (size_t)source->size : sizeof(begin);
    rc = stk_source_read(source, begin, size, 0, error);
    if (rc == STOKER_OK)
        rc = stk_npy_parse(header, begin, size, source->size, path, error);
    if (rc != STOKER_OK)
        stk_source_close(source);
    return rc;
}

/* NONE: rows have no such element type. */
static stoker_dtype row_dtype(const struct stk_npy_header *header)
{
    static const stoker_dtype integers[9] = { [1] = STOKER_DTYPE_INT8,
                                              [2] = STOKER_DTYPE_INT16,
                                              [4] = STOKER_DTYPE_INT32,
                                              [8] = STOKER_DTYPE_INT64 };
    static const stoker_dtype floats[9] = {
        [2] = STOKER_DTYPE_FLOAT16, [4] = STOKER_DTYPE_FLOAT32, [8] = STOKER_DTYPE_FLOAT64
    };
    assert(header->element_bytes <= 8);
    if (header->kind == 'i')
        return integers[header->element_bytes];
    if (header->kind == 'f')
        return floats[header->element_bytes];
    return header->element_bytes == 1 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_NONE;
}

/* ---- labels --------------------------------------------------------------------- */

static uint64_t load_bits(const uint8_t *at, const struct stk_npy_header *header)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < header->element_bytes; i++)
        bits = bits << 8 | at[header->big_endian ? i : header->element_bytes - 1 - i];
    return bits;
}

/* False: larger than any int64_t. */
static bool load_integer(const uint8_t *at, const struct stk_npy_header *header, int64_t *out)
{
    const uint64_t bits = load_bits(at, header);
    assert(header->element_bytes >= 1);
    assert(header->element_bytes <= 8);
    const uint32_t unused = 64 - 8 * header->element_bytes;
    if (header->kind == 'i')
        *out = (int64_t)(bits << unused) >> unused;
    else
        *out = (int64_t)bits;
    return header->kind == 'i' || bits <= INT64_MAX;
}

static float float_of_half(uint64_t half)
{
    const uint64_t fraction = half & 1023;
    const uint64_t exponent = half >> 10 & 31;
    float value = (float)fraction * 0x1p-24F;
    if (exponent == 31)
        value = fraction == 0 ? INFINITY : NAN;
    else if (exponent > 0)
        value = (float)(1024 + fraction) * 0x1p-24F * (float)(1ULL << (exponent - 1));
    return (half & 0x8000) != 0 ? -value : value;
}

/* False: no finite float. */
static bool load_float(const uint8_t *at, const struct stk_npy_header *header, float *out)
{
    const uint64_t bits = load_bits(at, header);
    const uint32_t low = (uint32_t)bits;
    double wide = 0.0;
    if (header->element_bytes == 2) {
        *out = float_of_half(bits);
    } else if (header->element_bytes == 4) {
        memcpy(out, &low, sizeof(low));
    } else {
        memcpy(&wide, &bits, sizeof(bits));
        *out = (float)wide;
    }
    return isfinite(*out);
}

/* Labels 0..n-1 make n classes; a negative or a huge one is no class number. */
static uint32_t classes_of(const int64_t *labels, uint64_t count)
{
    int64_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (labels[i] < 0)
            return 0;
        if (labels[i] > largest)
            largest = labels[i];
    }
    return largest < CLASSES_MAX ? (uint32_t)largest + 1 : 0;
}

static int take_labels(struct npy *npy, const struct stk_source *source,
                       const struct stk_npy_header *header, stoker_error *error)
{
    uint8_t stored[LABELS_AT_ONCE * 8];
    const uint64_t count = header->lengths[0];
    int64_t *indexes = npy->label_memory.base;
    float *values = npy->label_memory.base;
    for (uint64_t done = 0; done < count;) {
        const uint64_t left = count - done;
        const uint64_t batch = left < LABELS_AT_ONCE ? left : LABELS_AT_ONCE;
        const uint64_t offset = header->header_bytes + done * header->element_bytes;
        int rc =
            stk_source_read(source, stored, (size_t)(batch * header->element_bytes), offset, error);
        if (rc != STOKER_OK)
            return rc;
        for (uint64_t i = 0; i < batch; i++) {
            const uint8_t *at = stored + i * header->element_bytes;
            const bool good = header->kind == 'f' ? load_float(at, header, &values[done + i])
                                                  : load_integer(at, header, &indexes[done + i]);
            if (!good)
                return refuse(STOKER_EFORMAT, source->path, offset + i * header->element_bytes,
                              "NPY: a label is no finite number that a float or int64 holds",
                              error);
        }
        done += batch;
    }
    return STOKER_OK;
}

static int check_labels(const struct npy *npy, const struct stk_source *source,
                        const struct stk_npy_header *header, stoker_error *error)
{
    if (header->rank > 2 || (header->rank == 2 && header->lengths[1] != 1))
        return refuse(STOKER_EFORMAT, source->path, STOKER_NO_OFFSET,
                      "NPY: labels are one number a sample", error);
    const struct stk_place place = stk_at(source->path, STOKER_NO_OFFSET);
    if (header->lengths[0] != npy->header.lengths[0])
        return stk_error_set(error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                             "%llu labels for the %llu samples of %s",
                             (unsigned long long)header->lengths[0],
                             (unsigned long long)npy->header.lengths[0], npy->path);
    return STOKER_OK;
}

static int load_labels(struct npy *npy, const struct stk_source *source,
                       const struct stk_npy_header *header, uint64_t max_bytes, stoker_error *error)
{
    int rc = check_labels(npy, source, header, error);
    if (rc != STOKER_OK)
        return rc;
    /* The file is as long as its header says, so this cannot overflow. */
    const uint64_t kept_bytes = header->lengths[0] * (header->kind == 'f' ? 4 : 8);
    if (kept_bytes > max_bytes)
        return refuse(STOKER_ELIMIT, source->path, STOKER_NO_OFFSET,
                      "the labels take more memory than max_bytes", error);
    if (stk_region_map(&npy->label_memory, (size_t)kept_bytes) != STOKER_OK)
        return refuse(STOKER_ENOMEM, source->path, STOKER_NO_OFFSET, "the labels", error);
    rc = take_labels(npy, source, header, error);
    npy->label_dtype = header->kind == 'f' ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_INT64;
    if (rc == STOKER_OK && header->kind != 'f')
        npy->class_count = classes_of(npy->label_memory.base, header->lengths[0]);
    return rc;
}

static int open_labels(struct npy *npy, const char *path, uint64_t max_bytes, stoker_error *error)
{
    struct stk_source source;
    struct stk_npy_header header;
    int rc = open_array(&source, &header, path, error);
    if (rc != STOKER_OK)
        return rc;
    rc = load_labels(npy, &source, &header, max_bytes, error);
    stk_source_close(&source);
    return rc;
}

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct npy *npy = self;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(stoker_dataset_info),
        .count = npy->header.lengths[0],
        .dtype = npy->dtype,
        .rank = npy->header.rank - 1,
        .label_dtype = npy->label_dtype,
        .class_count = npy->class_count,
        .file_count = 1,
        .encoded_bytes_max = npy->header.row_bytes,
        .dense = npy->codec == NULL,
    };
    for (uint32_t axis = 0; axis < out->rank; axis++)
        out->shape[axis] = npy->header.lengths[axis + 1];
    stk_axes_find_image(out);
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct npy *npy = self;
    const int64_t *classes = npy->label_memory.base;
    const float *targets = npy->label_memory.base;
    for (uint32_t i = 0; i < count; i++) {
        if (npy->label_dtype == STOKER_DTYPE_FLOAT32)
            ((float *)out)[i] = targets[ids[i]];
        else
            ((int64_t *)out)[i] = classes[ids[i]];
    }
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct npy *npy = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < npy->header.lengths[0]);
        out[i] = (stoker_part){
            .extent = { .offset = npy->header.header_bytes + ids[i] * npy->header.row_bytes,
                        .bytes = npy->header.row_bytes },
            .codec = npy->codec,
        };
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct npy *npy = self;
    if (file != 0)
        return STOKER_EINVAL;
    *out = (stoker_file){ .path = npy->path, .fd = npy->source.fd, .size = npy->source.size };
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct npy *npy = self;
    stk_source_close(&npy->source);
    stk_region_unmap(&npy->label_memory);
    stk_free(npy->path);
    stk_free(npy);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "npy",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy };

/* ---- open ----------------------------------------------------------------------- */

static int open_rows(struct npy *npy, stoker_error *error)
{
    int rc = open_array(&npy->source, &npy->header, npy->path, error);
    if (rc != STOKER_OK)
        return rc;
    npy->dtype = row_dtype(&npy->header);
    if (npy->dtype == STOKER_DTYPE_NONE)
        return refuse(STOKER_ENOTSUP, npy->path, STOKER_NO_OFFSET,
                      "NPY: unsigned elements of more than a byte may be labels, not rows", error);
    if (npy->header.big_endian)
        npy->codec = stk_codec_big_endian(npy->header.element_bytes);
    return STOKER_OK;
}

static int open_both(struct npy *npy, const char *labels_path,
                     const stoker_dataset_options *options, stoker_error *error)
{
    int rc = open_rows(npy, error);
    if (rc == STOKER_OK && labels_path != NULL)
        rc = open_labels(npy, labels_path, options->max_bytes, error);
    return rc;
}

static int make(stoker_dataset **out, const char *rest, size_t path_bytes, const char *labels_path,
                const stoker_dataset_options *options, stoker_error *error)
{
    struct npy *npy = stk_calloc(1, sizeof(*npy));
    if (npy == NULL)
        return refuse(STOKER_ENOMEM, rest, STOKER_NO_OFFSET, "opening", error);
    npy->source = (struct stk_source)STK_SOURCE_CLOSED;
    npy->path = stk_calloc(path_bytes + 1, 1);
    int rc = STOKER_OK;
    if (npy->path == NULL) {
        rc = refuse(STOKER_ENOMEM, rest, STOKER_NO_OFFSET, "the path", error);
    } else {
        memcpy(npy->path, rest, path_bytes);
        rc = open_both(npy, labels_path, options, error);
    }
    if (rc == STOKER_OK) {
        rc = stoker_dataset_create(out, &ops, npy, NULL);
        if (rc != STOKER_OK)
            (void)refuse(rc, npy->path, STOKER_NO_OFFSET, "opening", error);
    }
    if (rc != STOKER_OK)
        destroy(npy);
    return rc;
}

static int open_npy(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    const struct stk_place place = STK_NOWHERE;
    if (options->split != NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place,
                             "split \"%s\": npy names its files and has no splits", options->split);
    const struct stk_spec spec = stk_spec_split(rest, ',');
    if (spec.name_bytes == 0 || (spec.after != NULL && spec.after[0] == '\0'))
        return stk_error_set(error, STOKER_ESPEC, STOKER_STAGE_OPEN, &place,
                             "\"npy:%s\": a file name is empty; write npy:X.npy or "
                             "npy:X.npy,Y.npy",
                             rest);
    return make(out, rest, spec.name_bytes, spec.after, options, error);
}

static bool recognise_npy(const char *path)
{
    struct stk_source source;
    uint8_t begin[8] = { 0 };
    if (stk_source_open(&source, path, NULL) != STOKER_OK)
        return false;
    const bool like = source.size >= sizeof(begin) &&
                      stk_source_read(&source, begin, sizeof(begin), 0, NULL) == STOKER_OK &&
                      stk_npy_magic(begin, sizeof(begin));
    stk_source_close(&source);
    return like;
}

const struct stk_format stk_format_npy = { .name = "npy",
                                           .open = open_npy,
                                           .recognise = recognise_npy };
