/* several_set.h - a data set of three parts and six fields a sample, whose every byte is known.
 *
 *   part 0, file 0   "image"  4 x 3 x 2 uint8           a codec that inverts the bytes, and knows broken samples
 *   part 1, file 1   "words"  up to 7 x int32           raw, varies
 *   part 2, file 0   "box"    2 x float32               one codec for both fields
 *                    "text"   up to 20 bytes, varies
 *   values()         "label"  int64
 *                    "weight" 2 x float32
 *
 * Without Criterion, because the programs for ThreadSanitizer use it as well.
 */
#ifndef STK_TEST_SEVERAL_SET_H
#define STK_TEST_SEVERAL_SET_H

#include <sys/mman.h>

#include "support/runs/scenario.h"

enum {
    SEVERAL_COUNT = 53,
    SEVERAL_FIELDS = 6,
    SEVERAL_PARTS = 3,
    SEVERAL_IMAGE = 24,
    SEVERAL_WORDS = 7,
    SEVERAL_TEXT = 20,
    SEVERAL_PART = 8 + SEVERAL_TEXT, /* the longest part 2 */
    SEVERAL_SAMPLE = SEVERAL_IMAGE + SEVERAL_PART,
    SEVERAL_NOTHING_BROKEN = INT32_MAX
};

struct several_set {
    stoker_dataset *dataset;
    stoker_codec image;
    stoker_codec pair;
    uint8_t file0[SEVERAL_COUNT * SEVERAL_SAMPLE];
    int32_t file1[SEVERAL_COUNT * SEVERAL_WORDS];
    int fds[2];
    uint32_t broken_image; /* sample whose part 0 its codec refuses */
    uint32_t broken_pair;  /* part 2 */
    bool in_memory;        /* parts lie in memory, encoded as in the files */
    bool fixed;            /* every "words" and "text" has its full length */
};

/* ---- the truth ---- */

static inline uint32_t several_words(uint64_t id)
{
    return (uint32_t)(stk_mix64(id) % (SEVERAL_WORDS + 1));
}

static inline uint32_t several_text(uint64_t id)
{
    return (uint32_t)(stk_mix64(id + 77) % (SEVERAL_TEXT + 1));
}

static inline uint8_t several_byte(uint64_t id, uint32_t field, uint32_t at)
{
    return (uint8_t)stk_mix64((id * 8 + field) * 1000 + at);
}

/* Returns true if the row of a field is that of the sample. */
static inline bool several_matches(uint64_t id, uint32_t field, const uint8_t *row, uint64_t length)
{
    uint8_t expected[64];
    size_t bytes = 0;
    if (field == 4) {
        const int64_t label = (int64_t)id * 3;
        memcpy(expected, &label, bytes = sizeof(label));
    } else if (field == 5 || field == 2) {
        const float pair[2] = { (float)id, (float)id + (field == 5 ? 0.5F : 0.25F) };
        memcpy(expected, pair, bytes = sizeof(pair));
    } else {
        bytes = field == 0   ? SEVERAL_IMAGE
                : field == 1 ? several_words(id) * sizeof(int32_t)
                             : several_text(id);
        for (uint32_t at = 0; at < bytes; at++)
            expected[at] = several_byte(id, field, at);
    }
    if (field == 1 && length != several_words(id))
        return false;
    if (field == 3 && length != several_text(id))
        return false;
    return memcmp(row, expected, bytes) == 0;
}

/* ---- the data set ---- */

static inline int several_describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = SEVERAL_COUNT,
                                  .field_count = SEVERAL_FIELDS,
                                  .part_count = SEVERAL_PARTS,
                                  .file_count = 2,
                                  .encoded_bytes_max = SEVERAL_PART };
    return STOKER_OK;
}

static inline int several_field(const void *self, uint32_t field, stoker_field_info *out)
{
    static const stoker_field_info fields[SEVERAL_FIELDS] = {
        { .name = "image",
          .kind = STOKER_FIELD_KIND_IMAGE,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 3,
          .shape = { 4, 3, 2 } },
        { .name = "words",
          .dtype = STOKER_DTYPE_INT32,
          .rank = 1,
          .shape = { SEVERAL_WORDS },
          .varies = true,
          .part = 1 },
        { .name = "box", .dtype = STOKER_DTYPE_FLOAT32, .rank = 1, .shape = { 2 }, .part = 2 },
        { .name = "text",
          .kind = STOKER_FIELD_KIND_BYTES,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 1,
          .shape = { SEVERAL_TEXT },
          .varies = true,
          .part = 2 },
        { .name = "label", .dtype = STOKER_DTYPE_INT64, .part = STOKER_NO_PART },
        { .name = "weight",
          .dtype = STOKER_DTYPE_FLOAT32,
          .rank = 1,
          .shape = { 2 },
          .part = STOKER_NO_PART },
    };
    *out = fields[field];
    out->struct_size = sizeof(*out);
    if (((const struct several_set *)self)->fixed && out->varies) {
        out->varies = false;
        out->kind = STOKER_FIELD_KIND_ARRAY;
    }
    return STOKER_OK;
}

static inline int several_locate(const void *self, const uint64_t *ids, uint32_t count,
                                 stoker_part *parts, stoker_error *error)
{
    const struct several_set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        stoker_part *part = &parts[(size_t)i * SEVERAL_PARTS];
        const uint64_t at = ids[i] * SEVERAL_SAMPLE;
        const uint64_t words_at = ids[i] * SEVERAL_WORDS * sizeof(int32_t);
        const uint32_t words = set->fixed ? SEVERAL_WORDS : several_words(ids[i]);
        const uint32_t text = set->fixed ? SEVERAL_TEXT : several_text(ids[i]);
        part[0] = (stoker_part){ .extent = { .offset = at, .bytes = SEVERAL_IMAGE },
                                 .codec = &set->image };
        part[1] = (stoker_part){ .extent = { .offset = words_at, .bytes = words * 4, .file = 1 } };
        part[2] = (stoker_part){ .extent = { .offset = at + SEVERAL_IMAGE, .bytes = 8 + text },
                                 .codec = &set->pair };
        if (set->in_memory) {
            part[0].extent.memory = set->file0 + at;
            part[1].extent.memory = (const uint8_t *)set->file1 + words_at;
            part[2].extent.memory = set->file0 + at + SEVERAL_IMAGE;
        }
    }
    return STOKER_OK;
}

static inline int several_values(const void *self, uint32_t field, const uint64_t *ids,
                                 uint32_t count, void *out)
{
    (void)self;
    for (uint32_t i = 0; i < count; i++) {
        if (field == 4) {
            ((int64_t *)out)[i] = (int64_t)ids[i] * 3;
        } else {
            ((float *)out)[2 * i] = (float)ids[i];
            ((float *)out)[2 * i + 1] = (float)ids[i] + 0.5F;
        }
    }
    return STOKER_OK;
}

static inline int several_file(const void *self, uint32_t file, stoker_file *out)
{
    const struct several_set *set = self;
    *out = (stoker_file){ .path = file == 0 ? "images and pairs" : "words",
                          .fd = set->fds[file],
                          .size = file == 0 ? sizeof(set->file0) : sizeof(set->file1) };
    return STOKER_OK;
}

static inline int several_decode(const void *self, void *scratch, const stoker_encoded *in,
                                 const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    const struct several_set *set = self;
    (void)scratch;
    if (in->sample == set->broken_image || in->size != row_bytes) {
        (void)snprintf(error->message, sizeof(error->message), "a broken image");
        return STOKER_ECORRUPT;
    }
    for (size_t at = 0; at < row_bytes; at++)
        ((uint8_t *)row)[at] = (uint8_t)~in->bytes[at];
    return STOKER_OK;
}

static inline int several_decode_pair(const void *self, void *scratch, const stoker_encoded *in,
                                      const stoker_decoded *out, stoker_error *error)
{
    stoker_row *rows = out->rows;
    const struct several_set *set = self;
    (void)scratch;
    (void)error;
    if (in->sample == set->broken_pair || out->field_count != 2 || rows[0].bytes_max != 8)
        return STOKER_EFORMAT;
    memcpy(rows[0].data, in->bytes, 8);
    memcpy(rows[1].data, in->bytes + 8, in->size - 8);
    rows[1].length = in->size - 8;
    return STOKER_OK;
}

static const stoker_dataset_ops several_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                                .name = "several",
                                                .describe = several_describe,
                                                .field = several_field,
                                                .locate = several_locate,
                                                .values = several_values,
                                                .file = several_file };

static inline void several_fill(struct several_set *set)
{
    for (uint32_t id = 0; id < SEVERAL_COUNT; id++) {
        uint8_t *at = set->file0 + (size_t)id * SEVERAL_SAMPLE;
        const float box[2] = { (float)id, (float)id + 0.25F };
        uint8_t *words = (uint8_t *)&set->file1[(size_t)id * SEVERAL_WORDS];
        for (uint32_t i = 0; i < SEVERAL_IMAGE; i++)
            at[i] = (uint8_t)~several_byte(id, 0, i);
        memcpy(at + SEVERAL_IMAGE, box, sizeof(box));
        for (uint32_t i = 0; i < SEVERAL_TEXT; i++)
            at[SEVERAL_IMAGE + 8 + i] = several_byte(id, 3, i);
        for (uint32_t i = 0; i < SEVERAL_WORDS * sizeof(int32_t); i++)
            words[i] = several_byte(id, 1, i);
    }
}

static inline bool several_make_as(struct several_set *set, bool fixed)
{
    *set = (struct several_set){ .broken_image = SEVERAL_NOTHING_BROKEN,
                                 .broken_pair = SEVERAL_NOTHING_BROKEN,
                                 .fixed = fixed };
    set->image = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                 .name = "inverted",
                                 .self = set,
                                 .decode = several_decode };
    set->pair = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                .name = "pair",
                                .self = set,
                                .flags = STOKER_CODEC_FIELDS,
                                .decode = several_decode_pair };
    several_fill(set);
    set->fds[0] = memfd_create("several0", MFD_CLOEXEC);
    set->fds[1] = memfd_create("several1", MFD_CLOEXEC);
    return set->fds[0] >= 0 && set->fds[1] >= 0 &&
           write(set->fds[0], set->file0, sizeof(set->file0)) == (ssize_t)sizeof(set->file0) &&
           write(set->fds[1], set->file1, sizeof(set->file1)) == (ssize_t)sizeof(set->file1) &&
           stoker_dataset_create(&set->dataset, &several_ops, set, NULL) == STOKER_OK;
}

static inline bool several_make(struct several_set *set)
{
    return several_make_as(set, false);
}

enum { SEVERAL_BLOCKS = 14 };

static inline int several_describe_blocks(const void *self, stoker_dataset_info *out)
{
    const int rc = several_describe(self, out);
    out->block_count = SEVERAL_BLOCKS;
    return rc;
}

/* Blocks of 1, 4 and 3 samples in turn; the last one has 20. */
static inline uint64_t several_block_first(const void *self, uint64_t block)
{
    (void)self;
    return block / 3 * 8 + (block % 3 == 2 ? 5 : block % 3);
}

/* The same samples, in a data set that declares blocks. The caller closes it before the set. */
static inline stoker_dataset *several_in_blocks(struct several_set *set)
{
    stoker_dataset_ops ops = several_ops;
    stoker_dataset *dataset = NULL;
    ops.describe = several_describe_blocks;
    ops.block_first = several_block_first;
    return stoker_dataset_create(&dataset, &ops, set, NULL) == STOKER_OK ? dataset : NULL;
}

static inline void several_remove(struct several_set *set)
{
    stoker_dataset_close(&set->dataset);
    (void)close(set->fds[0]);
    (void)close(set->fds[1]);
}

/* ---- batches ---- */

/* A row of a field in a lent batch, whose fields that vary are packed, and its length if it
 * varies. */
static inline const uint8_t *stk_field_row(const stoker_batch *batch, uint32_t field, uint32_t row,
                                           uint64_t *length)
{
    const stoker_field *shown = &batch->fields[field];
    size_t entry_bytes = stoker_dtype_bytes(shown->values.dtype);
    for (uint32_t axis = 1; axis < shown->values.rank; axis++)
        entry_bytes *= (size_t)shown->values.shape[axis];
    const uint8_t *values = shown->values.data;
    *length = 0;
    if (shown->offsets == NULL)
        return values + row * entry_bytes;
    *length = (uint64_t)(shown->offsets[row + 1] - shown->offsets[row]);
    return values + (size_t)shown->offsets[row] * entry_bytes;
}

/* Returns the first field of a batch that does not match, delivered as stored; SEVERAL_FIELDS = all
 * do. */
static inline uint32_t several_wrong(const stoker_batch *batch, uint32_t first_field)
{
    uint64_t length;
    for (uint32_t row = 0; row < batch->count; row++)
        for (uint32_t field = first_field; field < SEVERAL_FIELDS; field++) {
            const uint8_t *at = stk_field_row(batch, field, row, &length);
            if (!several_matches(batch->ids[row], field, at, length))
                return field;
        }
    return SEVERAL_FIELDS;
}

#endif
