/* fields_layout.c - see fields_layout.h. */
#include "datasets/shards/fields_layout.h"

#include <assert.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c.h"

static const uint8_t magic[8] = { 0x89, 'S', 'T', 'K', '\r', '\n', 0x1A, '\n' };

/* Offsets in the header. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_NEEDS = 12,
    AT_FLAGS = 16,
    AT_HEADER_BYTES = 20,
    AT_COUNT = 24,
    AT_FILE_BYTES = 32,
    AT_INDEX = 40,
    AT_ALIGNMENT = 48,
    AT_FIELD_COUNT = 52,
    AT_PART_COUNT = 56,
    AT_LONGEST = 60,
    AT_NAMES_BYTES = 64,
    AT_INDEX_SUM = 68,
    AT_NUMBER = 72,
    AT_FIRST = 80,
    AT_SOURCE_FIRST = 88,
    AT_SOURCE_COUNT = 96,
    AT_SET_ID = 104,
    AT_ZEROS = 112,
    AT_SUM = 4092
};

/* Offsets in a field. */
enum {
    IN_NAME = 0,
    IN_KIND = 64,
    IN_DTYPE = 65,
    IN_RANK = 66,
    IN_FLAGS = 67, /* bit 0 = varies, bit 1 = sizes differ */
    IN_PART = 68,
    IN_CLASSES = 72,
    IN_FIELD_ZEROS = 76,
    IN_SHAPE = 80,
    IN_FIELD_END = 144
};

/* Offsets in the entry of a part. */
enum { IN_OFFSET = 0, IN_BYTES = 8, IN_SUM = 12, IN_CODEC = 16, IN_PART_ZEROS = 17 };

enum { LZ4_RATIO_MAX = 255, ZSTD_RATIO_MAX = 32768, VARIES = 1, SIZES_DIFFER = 2 };

static bool all_zero(const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (from[i] != 0)
            return false;
    }
    return true;
}

/* ---- sizes ---------------------------------------------------------------------- */

static uint64_t product(const struct stk_fields_field *field, uint32_t first_axis)
{
    uint64_t bytes = stoker_dtype_bytes(field->dtype);
    for (uint32_t axis = first_axis; axis < field->rank; axis++) {
        if (__builtin_mul_overflow(bytes, field->shape[axis], &bytes) ||
            bytes > STK_SHARD_ROW_BYTES_MAX)
            return 0;
    }
    return bytes;
}

uint64_t stk_fields_bytes(const struct stk_fields_field *field)
{
    return product(field, 0);
}

uint64_t stk_fields_entry_bytes(const struct stk_fields_field *field)
{
    return product(field, 1);
}

uint64_t stk_fields_entries_at(const struct stk_fields_header *header)
{
    return (uint64_t)header->field_count * STK_SHARD_FIELD_BYTES;
}

uint64_t stk_fields_labels_at(const struct stk_fields_header *header)
{
    return stk_fields_entries_at(header) +
           header->count * header->part_count * STK_SHARD_PART_BYTES;
}

uint64_t stk_fields_names_at(const struct stk_fields_header *header)
{
    return stk_fields_labels_at(header) + header->count * STK_SHARD_LABEL_BYTES;
}

bool stk_fields_index_bytes(const struct stk_fields_header *header, uint64_t *bytes)
{
    const uint64_t each =
        (uint64_t)header->part_count * STK_SHARD_PART_BYTES + STK_SHARD_LABEL_BYTES;
    if (header->count > ((uint64_t)1 << 62) / each)
        return false;
    *bytes =
        stk_shard_align(stk_fields_names_at(header) + header->names_bytes, STK_SHARD_BLOCK_BYTES);
    return true;
}

/* ---- header --------------------------------------------------------------------- */

uint32_t stk_fields_version(const uint8_t *from)
{
    return memcmp(from, magic, sizeof(magic)) == 0 ? stk_load_le32(from + AT_VERSION) : 0;
}

void stk_fields_header_store(uint8_t *to, const struct stk_fields_header *header)
{
    memset(to, 0, STK_SHARD_BLOCK_BYTES);
    memcpy(to + AT_MAGIC, magic, sizeof(magic));
    stk_store_le32(to + AT_VERSION, STK_SHARD_FIELDS_VERSION);
    stk_store_le32(to + AT_NEEDS, header->needs);
    stk_store_le32(to + AT_FLAGS, header->flags);
    stk_store_le32(to + AT_HEADER_BYTES, STK_SHARD_BLOCK_BYTES);
    stk_store_le64(to + AT_COUNT, header->count);
    stk_store_le64(to + AT_FILE_BYTES, header->file_bytes);
    stk_store_le64(to + AT_INDEX, header->index_at);
    stk_store_le32(to + AT_ALIGNMENT, header->alignment);
    stk_store_le32(to + AT_FIELD_COUNT, header->field_count);
    stk_store_le32(to + AT_PART_COUNT, header->part_count);
    stk_store_le32(to + AT_LONGEST, header->longest_bytes);
    stk_store_le32(to + AT_NAMES_BYTES, header->names_bytes);
    stk_store_le32(to + AT_INDEX_SUM, header->index_sum);
    stk_store_le32(to + AT_NUMBER, header->number);
    stk_store_le64(to + AT_FIRST, header->first);
    stk_store_le64(to + AT_SOURCE_FIRST, header->source_first);
    stk_store_le64(to + AT_SOURCE_COUNT, header->source_count);
    stk_store_le64(to + AT_SET_ID, header->set_id);
    stk_store_le32(to + AT_SUM, stk_crc32c(0, to, AT_SUM));
}

static void load_header(struct stk_fields_header *out, const uint8_t *from)
{
    *out = (struct stk_fields_header){
        .needs = stk_load_le32(from + AT_NEEDS),
        .flags = stk_load_le32(from + AT_FLAGS),
        .count = stk_load_le64(from + AT_COUNT),
        .file_bytes = stk_load_le64(from + AT_FILE_BYTES),
        .index_at = stk_load_le64(from + AT_INDEX),
        .index_sum = stk_load_le32(from + AT_INDEX_SUM),
        .field_count = stk_load_le32(from + AT_FIELD_COUNT),
        .part_count = stk_load_le32(from + AT_PART_COUNT),
        .names_bytes = stk_load_le32(from + AT_NAMES_BYTES),
        .alignment = stk_load_le32(from + AT_ALIGNMENT),
        .longest_bytes = stk_load_le32(from + AT_LONGEST),
        .number = stk_load_le32(from + AT_NUMBER),
        .first = stk_load_le64(from + AT_FIRST),
        .source_first = stk_load_le64(from + AT_SOURCE_FIRST),
        .source_count = stk_load_le64(from + AT_SOURCE_COUNT),
        .set_id = stk_load_le64(from + AT_SET_ID),
    };
}

static const char *wrong_in_header(const struct stk_fields_header *header)
{
    const uint32_t alignment = header->alignment;
    uint64_t index_bytes = 0;
    if (alignment == 0 || alignment > STK_SHARD_ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)
        return "the alignment";
    if (header->field_count == 0 || header->field_count > STOKER_FIELDS_MAX ||
        header->part_count == 0 || header->part_count > header->field_count ||
        header->field_count > header->part_count + 1)
        return "the number of fields or parts";
    if (header->names_bytes > STK_SHARD_NAMES_MAX)
        return "the names of the classes";
    if (header->count == 0 || !stk_fields_index_bytes(header, &index_bytes))
        return "the number of samples";
    if (header->index_at < STK_SHARD_BLOCK_BYTES || header->index_at % STK_SHARD_BLOCK_BYTES != 0 ||
        header->index_at > header->file_bytes ||
        header->file_bytes - header->index_at != index_bytes)
        return "where the index is";
    if (header->longest_bytes == 0 || header->longest_bytes > header->index_at)
        return "the longest part";
    if (header->first > UINT64_MAX - header->count || header->source_count < header->count ||
        header->source_first > UINT64_MAX - header->source_count)
        return "the place in the set";
    return NULL;
}

static int refused(int code, const char **what, const char *text)
{
    *what = text;
    return code;
}

int stk_fields_header_load(struct stk_fields_header *out, const uint8_t *from, uint64_t file_bytes,
                           const char **what)
{
    if (file_bytes < STK_SHARD_BLOCK_BYTES)
        return refused(STOKER_ETRUNCATED, what, "no whole header");
    if (stk_fields_version(from) == 0)
        return refused(STOKER_EMAGIC, what, "not a shard");
    if (stk_fields_version(from) != STK_SHARD_FIELDS_VERSION)
        return refused(STOKER_ENOTSUP, what, "an unknown version of the format");
    if (stk_load_le32(from + AT_SUM) != stk_crc32c(0, from, AT_SUM))
        return refused(STOKER_ECORRUPT, what, "the header's checksum");
    load_header(out, from);
    if ((out->needs & ~STK_SHARD_FIELDS_NEEDS_KNOWN) != 0)
        return refused(STOKER_ENOTSUP, what, "it needs an unknown feature");
    if (out->file_bytes > file_bytes)
        return refused(STOKER_ETRUNCATED, what, "the end is missing");
    if (out->file_bytes < file_bytes)
        return refused(STOKER_EOVERSIZE, what, "bytes after the end");
    *what = "the header's own fields";
    if (stk_load_le32(from + AT_HEADER_BYTES) != STK_SHARD_BLOCK_BYTES ||
        !all_zero(from + AT_ZEROS, AT_SUM - AT_ZEROS) || stk_load_le32(from + AT_NUMBER + 4) != 0)
        return STOKER_EFORMAT;
    *what = wrong_in_header(out);
    return *what == NULL ? STOKER_OK : STOKER_EFORMAT;
}

/* ---- fields --------------------------------------------------------------------- */

void stk_fields_field_store(uint8_t *to, const struct stk_fields_field *field)
{
    memset(to, 0, STK_SHARD_FIELD_BYTES);
    memcpy(to + IN_NAME, field->name, strlen(field->name));
    to[IN_KIND] = (uint8_t)field->kind;
    to[IN_DTYPE] = (uint8_t)field->dtype;
    to[IN_RANK] = (uint8_t)field->rank;
    to[IN_FLAGS] =
        (uint8_t)((field->varies ? VARIES : 0) | (field->sizes_differ ? SIZES_DIFFER : 0));
    stk_store_le32(to + IN_PART, field->part);
    stk_store_le32(to + IN_CLASSES, field->class_count);
    for (uint32_t axis = 0; axis < STOKER_RANK_MAX; axis++)
        stk_store_le64(to + IN_SHAPE + 8 * (size_t)axis, field->shape[axis]);
}

static bool is_pixels(const struct stk_fields_field *field)
{
    return field->kind == STOKER_FIELD_IMAGE || field->kind == STOKER_FIELD_MASK;
}

/* Names and kinds are checked again when the data set is made. */
static const char *wrong_in_field(const struct stk_fields_field *field,
                                  const struct stk_fields_header *header)
{
    const bool label = field->part == STOKER_NO_PART;
    if (memchr(field->name, '\0', sizeof(field->name)) == NULL)
        return "a field's name";
    if (field->rank >= STOKER_RANK_MAX || stk_fields_bytes(field) == 0 ||
        (field->varies && field->rank == 0))
        return "the shape of a field";
    if (!label && field->part >= header->part_count)
        return "a field of a part that is not there";
    if (label && (field->rank != 0 ||
                  (field->dtype != STOKER_DTYPE_INT64 && field->dtype != STOKER_DTYPE_FLOAT32)))
        return "the type of the labels";
    if (field->class_count > STK_SHARD_CLASSES_MAX)
        return "the classes";
    if (is_pixels(field) && (field->rank != 3 || field->dtype != STOKER_DTYPE_UINT8))
        return "an image that is not height, width and channels of uint8";
    return field->sizes_differ && !is_pixels(field) ? "sizes that differ, but no images" : NULL;
}

int stk_fields_field_load(struct stk_fields_field *out, const uint8_t *from,
                          const struct stk_fields_header *header, const char **what)
{
    *out = (struct stk_fields_field){ .kind = (stoker_field_kind)from[IN_KIND],
                                      .dtype = (stoker_dtype)from[IN_DTYPE],
                                      .rank = from[IN_RANK],
                                      .varies = (from[IN_FLAGS] & VARIES) != 0,
                                      .sizes_differ = (from[IN_FLAGS] & SIZES_DIFFER) != 0,
                                      .part = stk_load_le32(from + IN_PART),
                                      .class_count = stk_load_le32(from + IN_CLASSES) };
    memcpy(out->name, from + IN_NAME, sizeof(out->name));
    for (uint32_t axis = 0; axis < STOKER_RANK_MAX; axis++)
        out->shape[axis] = stk_load_le64(from + IN_SHAPE + 8 * (size_t)axis);
    *what = "bytes of a field that must be 0";
    if (from[IN_FLAGS] > (VARIES | SIZES_DIFFER) ||
        !all_zero(from + IN_FIELD_ZEROS, IN_SHAPE - IN_FIELD_ZEROS) ||
        !all_zero(from + IN_FIELD_END, STK_SHARD_FIELD_BYTES - IN_FIELD_END))
        return STOKER_EFORMAT;
    *what = wrong_in_field(out, header);
    return *what == NULL ? STOKER_OK : STOKER_EFORMAT;
}

/* ---- parts ---------------------------------------------------------------------- */

void stk_fields_part_store(uint8_t *to, const struct stk_fields_part *part)
{
    memset(to, 0, STK_SHARD_PART_BYTES);
    stk_store_le64(to + IN_OFFSET, part->offset);
    stk_store_le32(to + IN_BYTES, part->bytes);
    stk_store_le32(to + IN_SUM, part->sum);
    to[IN_CODEC] = (uint8_t)part->codec;
}

static bool size_fits(const struct stk_fields_part *part, const struct stk_fields_field *field)
{
    const uint64_t bytes = stk_fields_bytes(field);
    switch (part->codec) {
    case STK_SHARD_RAW:
        return field->varies
                   ? part->bytes <= bytes && part->bytes % stk_fields_entry_bytes(field) == 0
                   : part->bytes == bytes;
    case STK_SHARD_LZ4:
        return !field->varies && bytes <= (uint64_t)part->bytes * LZ4_RATIO_MAX;
    case STK_SHARD_ZSTD:
        return !field->varies && bytes <= (uint64_t)part->bytes * ZSTD_RATIO_MAX;
    default:
        return is_pixels(field) && part->bytes > 0;
    }
}

int stk_fields_part_load(struct stk_fields_part *out, const uint8_t *from,
                         const struct stk_fields_header *header,
                         const struct stk_fields_field *field, uint64_t *free_at, const char **what)
{
    assert(*free_at <= header->index_at);
    *out = (struct stk_fields_part){ .offset = stk_load_le64(from + IN_OFFSET),
                                     .bytes = stk_load_le32(from + IN_BYTES),
                                     .sum = stk_load_le32(from + IN_SUM),
                                     .codec = from[IN_CODEC] };
    *what = NULL;
    if (out->codec >= STK_SHARD_PART_CODECS || (header->needs >> out->codec & 1) == 0)
        *what = "a codec that the header does not name";
    else if (!all_zero(from + IN_PART_ZEROS, STK_SHARD_PART_BYTES - IN_PART_ZEROS))
        *what = "bytes of a part that must be 0";
    else if (out->offset < *free_at || out->offset % header->alignment != 0)
        *what = "a part that overlaps the one before, or is not aligned";
    else if (out->bytes > header->longest_bytes || out->offset > header->index_at ||
             out->bytes > header->index_at - out->offset)
        *what = "a part that is too long or not among the parts";
    else if (!size_fits(out, field))
        *what = "a part whose bytes cannot be its field";
    if (*what != NULL)
        return STOKER_EFORMAT;
    *free_at = out->offset + out->bytes;
    return STOKER_OK;
}
