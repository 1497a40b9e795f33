/* fielded.c - see fielded.h.
 *
 *   names ──▶ headers ──▶ consistent? ──▶ indexes ──▶ a codec per field ──▶ callbacks
 *
 * Verified indexes lie in memory, 24 bytes a part. A part is verified by its codec when it is read.
 */
#include "datasets/shards/fielded.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "datasets/shards/fields_layout.h"
#include "datasets/shards/list.h"
#include "datasets/source.h"
#include "loader/base/bytes.h"
#include "loader/base/crc32c.h"
#include "loader/base/memory.h"
#include "loader/codec/lz4.h"
#include "loader/codec/raw.h"
#include "loader/codec/refuse.h"
#include "loader/codec/zstd.h"

enum { TAG_CODEC_SHIFT = 32 };

/* A part of a sample in memory. */
struct part {
    uint64_t offset;
    uint32_t bytes;
    uint32_t sum;
    uint32_t file;
    uint32_t codec;
};

struct file {
    struct stk_source source;
    struct stk_fields_header header;
};

/* How the parts of one field are decoded. */
struct decoder {
    struct stk_fields_field field;
    stoker_codec codec;
    /* the same for parts that are image files, by which stoker-pack knows them */
    stoker_codec files;
    stk_crc32c_fn *sum;
    uint64_t entry_bytes;
    struct stk_image_decoder image; /* all 0: no part of it is an image file */
    bool any_zstd;
    bool any_image;
};

struct fielded {
    struct stk_shard_list list;
    struct file *files;       /* [list.count] */
    struct decoder *decoders; /* [field_count] */
    uint32_t *field_of;       /* [part_count]: the field that a part fills */
    uint32_t field_count;
    uint32_t part_count;
    uint32_t longest_bytes;
    uint64_t pixels_max;
    uint64_t count;
    struct stk_region region; /* parts, then labels */
    struct part *parts;       /* [count][part_count] */
    stoker_label *labels;     /* [count] */
    uint8_t *index;           /* fields and names of the first shard */
    const char **names;       /* [class_count] of the label; NULL = none */
    uint32_t class_count;
};

/* ---- codecs --------------------------------------------------------------------- */

/* One worker's; what the field's parts do not need is NULL. */
struct scratch {
    void *image;
    void *zstd;
};

static void close_scratch(const void *self, void *at)
{
    const struct decoder *decoder = self;
    struct scratch *scratch = at;
    if (scratch == NULL)
        return;
    if (scratch->image != NULL)
        decoder->image.codec.close(decoder->image.codec.self, scratch->image);
    if (scratch->zstd != NULL)
        stk_codec_zstd.close(NULL, scratch->zstd);
    stk_free(scratch);
}

static int open_all(const struct decoder *decoder, bool any, void **out)
{
    const stoker_codec *image = &decoder->image.codec;
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    int rc = scratch == NULL ? STOKER_ENOMEM : STOKER_OK;
    if (rc == STOKER_OK && decoder->any_image)
        rc = (any ? image->open_any : image->open)(image->self, &scratch->image);
    if (rc == STOKER_OK && decoder->any_zstd)
        rc = stk_codec_zstd.open(NULL, &scratch->zstd);
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(decoder, scratch);
    return rc;
}

static int open_scratch(const void *self, void **out)
{
    return open_all(self, false, out);
}

static int open_any(const void *self, void **out)
{
    return open_all(self, true, out);
}

static int verify(const void *self, const stoker_encoded *in, stoker_error *error)
{
    const struct decoder *decoder = self;
    const uint32_t sum = decoder->sum(0, in->bytes, in->size);
    const uint32_t wanted = (uint32_t)in->tag;
    return sum == wanted
               ? STOKER_OK
               : stk_refuse(error, STOKER_ECORRUPT, "checksum %08x, not %08x", sum, wanted);
}

static int decode(const void *self, void *at, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    const struct decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    switch (in->tag >> TAG_CODEC_SHIFT) {
    case STK_SHARD_RAW:
        return stk_codec_raw.decode(NULL, NULL, in, row, row_bytes, error);
    case STK_SHARD_LZ4:
        return stk_codec_lz4.decode(NULL, NULL, in, row, row_bytes, error);
    case STK_SHARD_ZSTD:
        return stk_codec_zstd.decode(NULL, scratch->zstd, in, row, row_bytes, error);
    default:
        return image->decode(image->self, scratch->image, in, row, row_bytes, error);
    }
}

/* A field that varies is stored raw. */
static int decode_fields(const void *self, void *at, const stoker_encoded *in, stoker_row *rows,
                         uint32_t count, stoker_error *error)
{
    const struct decoder *decoder = self;
    (void)at;
    (void)count;
    if (in->size > rows[0].bytes_max || in->size % decoder->entry_bytes != 0)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes cannot be the field", in->size);
    if (in->size > 0)
        memcpy(rows[0].data, in->bytes, in->size);
    rows[0].length = in->size / decoder->entry_bytes;
    return STOKER_OK;
}

static int decode_any(const void *self, void *at, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const struct decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    return image->decode_any(image->self, scratch->image, in, pixels, pixels_bytes, size, error);
}

static int measure(const void *self, void *at, const stoker_encoded *in, stoker_size *size,
                   stoker_error *error)
{
    const struct decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    return image->measure(image->self, scratch->image, in, size, error);
}

static int decode_region(const void *self, void *at, const stoker_encoded *in,
                         const stoker_region *wanted, void *pixels, size_t pixels_bytes,
                         stoker_region *got, stoker_error *error)
{
    const struct decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    return image->decode_region(image->self, scratch->image, in, wanted, pixels, pixels_bytes, got,
                                error);
}

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct fielded *set = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = set->count,
                                  .field_count = set->field_count,
                                  .part_count = set->part_count,
                                  .file_count = set->list.count,
                                  .encoded_bytes_max = set->longest_bytes };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct fielded *set = self;
    const struct decoder *decoder = &set->decoders[number];
    const struct stk_fields_field *field = &decoder->field;
    const bool files_only = decoder->any_image && decoder->codec.decode_any != NULL;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = field->name,
                                .kind = field->kind,
                                .dtype = field->dtype,
                                .rank = field->rank,
                                .varies = field->varies,
                                .part = field->part,
                                .class_count = field->class_count,
                                .pixels_max = files_only ? set->pixels_max : 0,
                                .sizes_differ = field->sizes_differ };
    memcpy(out->shape, field->shape, sizeof(out->shape));
    return STOKER_OK;
}

static bool is_image_file(const struct part *part)
{
    return part->codec == STK_SHARD_PNG || part->codec == STK_SHARD_JPEG ||
           part->codec == STK_SHARD_WEBP;
}

static const stoker_codec *codec_of(const struct decoder *decoder, const struct part *part)
{
    return is_image_file(part) ? &decoder->files : &decoder->codec;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct fielded *set = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < set->count);
        const struct part *from = &set->parts[ids[i] * set->part_count];
        for (uint32_t p = 0; p < set->part_count; p++)
            *parts++ =
                (stoker_part){ .extent = { .offset = from[p].offset,
                                           .bytes = from[p].bytes,
                                           .file = from[p].file },
                               .codec = codec_of(&set->decoders[set->field_of[p]], &from[p]),
                               .tag = from[p].sum | (uint64_t)from[p].codec << TAG_CODEC_SHIFT };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct fielded *set = self;
    const bool floats = set->decoders[field].field.dtype == STOKER_DTYPE_FLOAT32;
    for (uint32_t i = 0; i < count; i++) {
        if (floats)
            ((float *)out)[i] = set->labels[ids[i]].value;
        else
            ((int64_t *)out)[i] = set->labels[ids[i]].index;
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t number, stoker_file *out)
{
    const struct fielded *set = self;
    const struct stk_source *source = &set->files[number].source;
    *out = (stoker_file){ .path = source->path, .fd = source->fd, .size = source->size };
    return STOKER_OK;
}

static const char *class_name(const void *self, uint32_t index)
{
    const struct fielded *set = self;
    return set->names == NULL || index >= set->class_count ? NULL : set->names[index];
}

static const char *stored_as(const void *self, uint64_t id)
{
    static const char *const names[STK_SHARD_PART_CODECS] = {
        [STK_SHARD_RAW] = "raw",   [STK_SHARD_LZ4] = "lz4",   [STK_SHARD_PNG] = "png",
        [STK_SHARD_JPEG] = "jpeg", [STK_SHARD_ZSTD] = "zstd", [STK_SHARD_WEBP] = "webp"
    };
    const struct fielded *set = self;
    return names[set->parts[id * set->part_count].codec];
}

static void destroy(void *self)
{
    struct fielded *set = self;
    for (uint32_t i = 0; set->decoders != NULL && i < set->field_count; i++)
        stk_image_decoder_close(&set->decoders[i].image);
    for (uint32_t i = 0; set->files != NULL && i < set->list.count; i++)
        if (set->files[i].source.path != NULL)
            stk_source_close(&set->files[i].source);
    stk_region_unmap(&set->region);
    stk_free(set->files);
    stk_free(set->decoders);
    stk_free(set->field_of);
    stk_free(set->index);
    stk_free(set->names);
    stk_shard_list_free(&set->list);
    stk_free(set);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "shards",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy,
                                        .class_name = class_name,
                                        .stored_as = stored_as };

/* ---- headers -------------------------------------------------------------------- */

struct opening {
    const struct stk_opening *base;
    bool partial;
    uint64_t bytes_max;
};

static int refuse(const struct opening *opening, const struct file *file, int code, uint64_t offset,
                  const char *what)
{
    const struct stk_place place = stk_at(file->source.path, offset);
    return stk_error_set(opening->base->error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

static int open_file(const struct opening *opening, struct file *file, const char *path)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
    const char *what = NULL;
    file->source = (struct stk_source)STK_SOURCE_CLOSED;
    int rc = stk_source_open(&file->source, path, opening->base->error);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t size = file->source.size;
    rc = stk_source_read(&file->source, block, size < sizeof(block) ? (size_t)size : sizeof(block),
                         0, opening->base->error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_fields_header_load(&file->header, block, size, &what);
    return rc == STOKER_OK ? rc : refuse(opening, file, rc, 0, what);
}

/* Why b cannot follow a; NULL = it can. */
static const char *gap(const struct stk_fields_header *a, const struct stk_fields_header *b,
                       bool partial)
{
    if (a->field_count != b->field_count || a->part_count != b->part_count ||
        a->names_bytes != b->names_bytes)
        return "the fields";
    if (partial)
        return NULL;
    if (a->set_id != b->set_id)
        return "the sets they were packed in";
    if ((a->flags & STK_SHARD_LAST) != 0 || b->number != a->number + 1 ||
        b->first != a->first + a->count || b->source_first != a->source_first + a->source_count)
        return "the numbers: shards are missing, or named out of order";
    return NULL;
}

static int mismatch(const struct opening *opening, const struct file *a, const struct file *b,
                    const char *what)
{
    const struct stk_place place = stk_at(b->source.path, STOKER_NO_OFFSET);
    return stk_error_set(opening->base->error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                         "it and %s disagree about %s", a->source.path, what);
}

static int check_ends(const struct fielded *set, const struct opening *opening)
{
    const struct stk_fields_header *first = &set->files[0].header;
    const struct stk_fields_header *last = &set->files[set->list.count - 1].header;
    if (opening->partial)
        return STOKER_OK;
    if (first->number != 0 || first->first != 0)
        return stk_opening_refuse(opening->base, STOKER_EMISMATCH,
                                  "the first one is missing; partial=1 allows it");
    return (last->flags & STK_SHARD_LAST) != 0
               ? STOKER_OK
               : stk_opening_refuse(
                     opening->base, STOKER_EMISMATCH,
                     "the last one is missing (packing did not end?); partial=1 allows it");
}

static int open_files(struct fielded *set, const struct opening *opening)
{
    int rc = stk_shard_list_make(&set->list, opening->base->path, opening->base->error);
    if (rc != STOKER_OK)
        return rc;
    set->files = stk_calloc(set->list.count, sizeof(*set->files));
    if (set->files == NULL)
        return stk_opening_refuse(opening->base, STOKER_ENOMEM, "opening");
    for (uint32_t i = 0; rc == STOKER_OK && i < set->list.count; i++) {
        struct file *file = &set->files[i];
        rc = open_file(opening, file, set->list.paths[i]);
        if (rc != STOKER_OK)
            return rc;
        const char *what = i == 0 ? NULL : gap(&file[-1].header, &file->header, opening->partial);
        if (what != NULL)
            return mismatch(opening, &file[-1], file, what);
        if (__builtin_add_overflow(set->count, file->header.count, &set->count))
            return stk_opening_refuse(opening->base, STOKER_ELIMIT, "too many samples");
        if (file->header.longest_bytes > set->longest_bytes)
            set->longest_bytes = file->header.longest_bytes;
    }
    set->field_count = set->files[0].header.field_count;
    set->part_count = set->files[0].header.part_count;
    return check_ends(set, opening);
}

/* ---- indexes -------------------------------------------------------------------- */

/* Check the sizes in the headers against max_bytes before allocating. */
static int take_memory(struct fielded *set, const struct opening *opening)
{
    const uint64_t each = (uint64_t)set->part_count * sizeof(struct part) + sizeof(stoker_label);
    if (set->count > opening->bytes_max / each)
        return stk_opening_refuse(opening->base, STOKER_ELIMIT,
                                  "their indexes take more than max_bytes");
    if (stk_region_map(&set->region, (size_t)(set->count * each)) != STOKER_OK)
        return stk_opening_refuse(opening->base, STOKER_ENOMEM, "the indexes");
    set->parts = set->region.base;
    set->labels = (stoker_label *)(void *)(set->parts + set->count * set->part_count);
    set->decoders = stk_calloc(set->field_count, sizeof(*set->decoders));
    set->field_of = stk_calloc(set->part_count, sizeof(*set->field_of));
    return set->decoders != NULL && set->field_of != NULL
               ? STOKER_OK
               : stk_opening_refuse(opening->base, STOKER_ENOMEM, "the fields");
}

/* The fields, from the first index; every part must have exactly one. */
static int load_fields(struct fielded *set, const struct opening *opening, const uint8_t *index)
{
    const struct file *file = &set->files[0];
    memset(set->field_of, 0xFF, set->part_count * sizeof(*set->field_of));
    for (uint32_t i = 0; i < set->field_count; i++) {
        struct stk_fields_field *field = &set->decoders[i].field;
        const char *what = NULL;
        int rc = stk_fields_field_load(field, index + (size_t)i * STK_SHARD_FIELD_BYTES,
                                       &file->header, &what);
        if (rc == STOKER_OK && field->part != STOKER_NO_PART &&
            set->field_of[field->part] != UINT32_MAX) {
            rc = STOKER_EFORMAT;
            what = "two fields of one part";
        }
        if (rc != STOKER_OK)
            return refuse(opening, file, rc,
                          file->header.index_at + (uint64_t)i * STK_SHARD_FIELD_BYTES, what);
        if (field->part != STOKER_NO_PART)
            set->field_of[field->part] = i;
        else
            set->class_count = field->class_count;
    }
    for (uint32_t p = 0; p < set->part_count; p++)
        if (set->field_of[p] == UINT32_MAX)
            return refuse(opening, file, STOKER_EFORMAT, file->header.index_at,
                          "a part without a field");
    return STOKER_OK;
}

static int load_parts(struct fielded *set, const struct opening *opening, uint32_t number,
                      const uint8_t *index, uint64_t first)
{
    const struct file *file = &set->files[number];
    const struct stk_fields_header *header = &file->header;
    const uint64_t at = stk_fields_entries_at(header);
    uint64_t free_at = STK_SHARD_BLOCK_BYTES;
    for (uint64_t i = 0; i < header->count * set->part_count; i++) {
        struct decoder *decoder = &set->decoders[set->field_of[i % set->part_count]];
        struct stk_fields_part part;
        const char *what = NULL;
        const uint64_t entry_at = at + i * STK_SHARD_PART_BYTES;
        const int rc =
            stk_fields_part_load(&part, index + entry_at, header, &decoder->field, &free_at, &what);
        if (rc != STOKER_OK)
            return refuse(opening, file, rc, header->index_at + entry_at, what);
        decoder->any_zstd = decoder->any_zstd || part.codec == STK_SHARD_ZSTD;
        decoder->any_image = decoder->any_image || part.codec == STK_SHARD_PNG ||
                             part.codec == STK_SHARD_JPEG || part.codec == STK_SHARD_WEBP;
        set->parts[first * set->part_count + i] = (struct part){ .offset = part.offset,
                                                                 .bytes = part.bytes,
                                                                 .sum = part.sum,
                                                                 .file = number,
                                                                 .codec = part.codec };
    }
    return STOKER_OK;
}

static int load_labels(struct fielded *set, const struct opening *opening, uint32_t number,
                       const uint8_t *index, uint64_t first)
{
    const struct file *file = &set->files[number];
    const uint64_t at = stk_fields_labels_at(&file->header);
    const uint32_t classes = set->class_count;
    const struct stk_fields_field *label = NULL;
    for (uint32_t i = 0; i < set->field_count; i++)
        if (set->decoders[i].field.part == STOKER_NO_PART)
            label = &set->decoders[i].field;
    for (uint64_t i = 0; i < file->header.count; i++) {
        const uint64_t bits = stk_load_le64(index + at + i * STK_SHARD_LABEL_BYTES);
        const uint32_t low = (uint32_t)bits;
        stoker_label *out = &set->labels[first + i];
        const bool floats = label != NULL && label->dtype == STOKER_DTYPE_FLOAT32;
        if (floats)
            memcpy(&out->value, &low, sizeof(low));
        else
            out->index = (int64_t)bits;
        if ((label == NULL && bits != 0) || (floats && bits > UINT32_MAX) ||
            (label != NULL && !floats && classes != 0 && bits >= classes))
            return refuse(opening, file, STOKER_EFORMAT,
                          file->header.index_at + at + i * STK_SHARD_LABEL_BYTES,
                          "a label that is no class");
    }
    return STOKER_OK;
}

/* One name per class of the label, each ended by a 0. */
static int load_names(struct fielded *set, const struct opening *opening)
{
    const struct stk_fields_header *header = &set->files[0].header;
    const char *at = (const char *)set->index + stk_fields_names_at(header);
    const char *end = at + header->names_bytes;
    uint32_t found = 0;
    if (header->names_bytes == 0)
        return STOKER_OK;
    set->names = stk_calloc((size_t)set->class_count + 1, sizeof(*set->names));
    if (set->names == NULL)
        return stk_opening_refuse(opening->base, STOKER_ENOMEM, "the names of the classes");
    for (; found < set->class_count && at < end; found++) {
        const size_t left = (size_t)(end - at);
        const size_t length = strnlen(at, left);
        if (length == 0 || length == left)
            break;
        set->names[found] = at;
        at += length + 1;
    }
    return found == set->class_count && at == end
               ? STOKER_OK
               : stk_opening_refuse(opening->base, STOKER_EFORMAT, "the names of the classes");
}

/* Read and verify the index of one shard, whose first sample is number `first` of all. */
static int load_index(struct fielded *set, const struct opening *opening, uint32_t number,
                      uint64_t first)
{
    const struct file *file = &set->files[number];
    const struct stk_fields_header *header = &file->header;
    const size_t bytes = (size_t)(header->file_bytes - header->index_at);
    const uint64_t names_at = stk_fields_names_at(header);
    uint8_t *index = stk_calloc(bytes, 1);
    if (index == NULL)
        return refuse(opening, file, STOKER_ENOMEM, header->index_at, "the index");
    int rc = stk_source_read(&file->source, index, bytes, header->index_at, opening->base->error);
    if (rc == STOKER_OK && stk_crc32c(0, index, bytes) != header->index_sum)
        rc = refuse(opening, file, STOKER_ECORRUPT, header->index_at, "the index's checksum");
    if (rc == STOKER_OK && number == 0)
        rc = load_fields(set, opening, index);
    else if (rc == STOKER_OK &&
             (memcmp(index, set->index, stk_fields_entries_at(header)) != 0 ||
              memcmp(index + names_at, set->index + stk_fields_names_at(&set->files[0].header),
                     header->names_bytes) != 0))
        rc = mismatch(opening, &set->files[0], file, "the fields, or the names of the classes");
    if (rc == STOKER_OK)
        rc = load_parts(set, opening, number, index, first);
    if (rc == STOKER_OK)
        rc = load_labels(set, opening, number, index, first);
    if (number == 0)
        set->index = index; /* freed with the set */
    else
        stk_free(index);
    return rc;
}

/* ---- decoders ------------------------------------------------------------------- */

/* Images of any size can be resized only if no part of the field is a row of pixels. */
static bool only_images(const struct fielded *set, uint32_t part)
{
    for (uint64_t i = 0; i < set->count; i++)
        if (!is_image_file(&set->parts[i * set->part_count + part]))
            return false;
    return true;
}

static int make_image(struct fielded *set, const struct opening *opening, struct decoder *decoder)
{
    const struct stk_fields_field *field = &decoder->field;
    const bool any = only_images(set, field->part);
    const struct stk_image_decoder_options options = {
        .shape = { .height = (uint32_t)field->shape[0],
                   .width = (uint32_t)field->shape[1],
                   .channels = (uint32_t)field->shape[2] },
        .any_pixels_max = any ? set->pixels_max : 0,
        .warnings_fail = opening->base->warnings_fail,
        .mask = field->kind == STOKER_FIELD_MASK,
    };
    const int rc = stk_image_decoder_init(&decoder->image, &options);
    if (rc != STOKER_OK)
        return stk_opening_refuse(opening->base, rc, "no codec for images of this shape");
    if (any) {
        decoder->codec.open_any = open_any;
        decoder->codec.decode_any = decode_any;
        decoder->codec.measure = measure;
        decoder->codec.decode_region = decode_region;
    }
    return STOKER_OK;
}

static int make_decoders(struct fielded *set, const struct opening *opening)
{
    int rc = STOKER_OK;
    set->pixels_max = opening->base->pixels_max;
    for (uint32_t i = 0; rc == STOKER_OK && i < set->field_count; i++) {
        struct decoder *decoder = &set->decoders[i];
        decoder->sum = stk_crc32c_fastest();
        decoder->entry_bytes = stk_fields_entry_bytes(&decoder->field);
        decoder->codec = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                         .name = "shard part",
                                         .self = decoder,
                                         .open = open_scratch,
                                         .close = close_scratch,
                                         .decode = decode,
                                         .decode_fields = decode_fields,
                                         .verify = verify };
        if (decoder->any_zstd && !stk_zstd_present())
            return stk_opening_refuse(
                opening->base, STOKER_ENOTSUP,
                "Zstandard parts, but this library was built without libzstd");
        if (decoder->any_image)
            rc = make_image(set, opening, decoder);
        decoder->files = decoder->codec;
        decoder->files.name = "image";
    }
    return rc;
}

/* ---- open ----------------------------------------------------------------------- */

/* Write the path of any shard in the folder; false: there is none. */
static bool find_shard(const char *folder, char path[PATH_MAX])
{
    DIR *stream = opendir(folder);
    bool found = false;
    if (stream == NULL)
        return false;
    const struct dirent *entry;
    while (!found && (entry = readdir(stream)) != NULL)
        found = stk_shard_list_takes(entry->d_name) &&
                snprintf(path, PATH_MAX, "%s/%s", folder, entry->d_name) < PATH_MAX;
    closedir(stream);
    return found;
}

bool stk_fielded_is(const char *folder)
{
    char path[PATH_MAX] = "";
    struct stk_source source;
    uint8_t begin[12] = { 0 };
    if (!find_shard(folder, path) || stk_source_open(&source, path, NULL) != STOKER_OK)
        return false;
    if (source.size >= sizeof(begin))
        (void)stk_source_read(&source, begin, sizeof(begin), 0, NULL);
    stk_source_close(&source);
    return stk_fields_version(begin) == STK_SHARD_FIELDS_VERSION;
}

int stk_fielded_open(stoker_dataset **out, const struct stk_opening *base, bool partial,
                     uint64_t bytes_max)
{
    const struct opening opening = { .base = base, .partial = partial, .bytes_max = bytes_max };
    struct fielded *set = stk_calloc(1, sizeof(*set));
    if (set == NULL)
        return stk_opening_refuse(base, STOKER_ENOMEM, "opening");
    int rc = open_files(set, &opening);
    if (rc == STOKER_OK)
        rc = take_memory(set, &opening);
    uint64_t first = 0;
    for (uint32_t i = 0; rc == STOKER_OK && i < set->list.count; i++) {
        rc = load_index(set, &opening, i, first);
        first += set->files[i].header.count;
    }
    if (rc == STOKER_OK)
        rc = load_names(set, &opening);
    if (rc == STOKER_OK)
        rc = make_decoders(set, &opening);
    return stk_opening_finish(base, rc, out, &ops, set);
}
