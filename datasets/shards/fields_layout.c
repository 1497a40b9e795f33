/* fields_layout.c - see fields_layout.h. */
#include "datasets/shards/fields_layout.h"

#include <assert.h>
#include <string.h>

#include "datasets/shards/begin.h"
#include "loader/base/bytes.h"

/* Offsets of the header's fields; those before belong to both versions. */
enum {
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
    AT_ZEROS = 112
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

void stk_fields_header_store(uint8_t *to, const struct stk_fields_header *header)
{
    stk_shard_begin_store(to, STK_SHARD_FIELDS_VERSION);
    stk_store_le32(to + STK_SHARD_AT_NEEDS, header->needs);
    stk_store_le32(to + STK_SHARD_AT_FLAGS, header->flags);
    stk_store_le64(to + STK_SHARD_AT_COUNT, header->count);
    stk_store_le64(to + STK_SHARD_AT_FILE_BYTES, header->file_bytes);
    stk_store_le64(to + STK_SHARD_AT_INDEX, header->index_at);
    stk_store_le32(to + STK_SHARD_AT_ALIGNMENT, header->alignment);
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
    stk_shard_begin_sum(to);
}

static void load_header(struct stk_fields_header *out, const uint8_t *from)
{
    *out = (struct stk_fields_header){
        .needs = stk_load_le32(from + STK_SHARD_AT_NEEDS),
        .flags = stk_load_le32(from + STK_SHARD_AT_FLAGS),
        .count = stk_load_le64(from + STK_SHARD_AT_COUNT),
        .file_bytes = stk_load_le64(from + STK_SHARD_AT_FILE_BYTES),
        .index_at = stk_load_le64(from + STK_SHARD_AT_INDEX),
        .index_sum = stk_load_le32(from + AT_INDEX_SUM),
        .field_count = stk_load_le32(from + AT_FIELD_COUNT),
        .part_count = stk_load_le32(from + AT_PART_COUNT),
        .names_bytes = stk_load_le32(from + AT_NAMES_BYTES),
        .alignment = stk_load_le32(from + STK_SHARD_AT_ALIGNMENT),
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
    uint64_t index_bytes = 0;
    if (header->field_count == 0 || header->field_count > STOKER_FIELDS_MAX ||
        header->part_count == 0 || header->part_count > header->field_count ||
        header->field_count > header->part_count + 1)
        return "the number of fields or parts";
    if (header->names_bytes > STK_SHARD_NAMES_MAX)
        return "the names of the classes";
    if (header->count == 0 || !stk_fields_index_bytes(header, &index_bytes))
        return "the number of samples";
    const struct stk_shard_numbers numbers = { .alignment = header->alignment,
                                               .longest_bytes = header->longest_bytes,
                                               .count = header->count,
                                               .file_bytes = header->file_bytes,
                                               .index_at = header->index_at,
                                               .index_bytes = index_bytes,
                                               .first = header->first,
                                               .source_first = header->source_first,
                                               .source_count = header->source_count };
    return stk_shard_numbers_wrong(&numbers);
}

int stk_fields_header_load(struct stk_fields_header *out, const uint8_t *from, uint64_t file_bytes,
                           const char **what)
{
    const int rc = stk_shard_begin_check(from, file_bytes, STK_SHARD_FIELDS_VERSION,
                                         STK_SHARD_FIELDS_NEEDS_KNOWN, what);
    if (rc != STOKER_OK)
        return rc;
    load_header(out, from);
    *what = "the header's own fields";
    if (!stk_shard_all_zero(from + AT_ZEROS, STK_SHARD_AT_SUM - AT_ZEROS) ||
        stk_load_le32(from + AT_NUMBER + 4) != 0)
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
        !stk_shard_all_zero(from + IN_FIELD_ZEROS, IN_SHAPE - IN_FIELD_ZEROS) ||
        !stk_shard_all_zero(from + IN_FIELD_END, STK_SHARD_FIELD_BYTES - IN_FIELD_END))
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
    const uint64_t entry_bytes = stk_fields_entry_bytes(field);
    assert(entry_bytes > 0); /* a field that was loaded has bytes, and these divide them */
    switch (part->codec) {
    case STK_SHARD_RAW:
        return field->varies ? part->bytes <= bytes && part->bytes % entry_bytes == 0
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
    if (out->codec >= STK_SHARD_CODECS || (header->needs >> out->codec & 1) == 0)
        *what = "a codec that the header does not name";
    else if (!stk_shard_all_zero(from + IN_PART_ZEROS, STK_SHARD_PART_BYTES - IN_PART_ZEROS))
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
