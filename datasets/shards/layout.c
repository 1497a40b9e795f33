/* layout.c - see layout.h. */
#include "datasets/shards/layout.h"

#include <assert.h>
#include <string.h>

#include "datasets/shards/begin.h"
#include "loader/base/bytes.h"

/* Offsets of the header's fields; those before belong to both versions. */
enum {
    AT_DTYPE = 52,
    AT_RANK = 53,
    AT_LABEL_DTYPE = 54,
    AT_IS_IMAGE = 55,
    AT_CLASS_COUNT = 56,
    AT_LONGEST = 60,
    AT_SHAPE = 64,
    AT_FIRST = 128,
    AT_SOURCE_FIRST = 136,
    AT_SOURCE_COUNT = 144,
    AT_SET_ID = 152,
    AT_NUMBER = 160,
    AT_INDEX_SUM = 164,
    AT_NAMES_BYTES = 168,
    AT_RESUME = 176,
    AT_NAME = 240,
    AT_ZEROS = AT_NAME + STOKER_FIELD_NAME_BYTES
};

/* Where each field of an entry lies. */
enum { IN_OFFSET = 0, IN_BYTES = 8, IN_SUM = 12, IN_CODEC = 16, IN_ZEROS = 17, IN_LABEL = 24 };

/* Nothing unpacks to more than this times its bytes. */
enum { LZ4_RATIO_MAX = 255, ZSTD_RATIO_MAX = 32768 };

/* ---- sizes ---------------------------------------------------------------------- */

uint64_t stk_shard_row_bytes(const struct stk_shard_header *header)
{
    uint64_t bytes = stoker_dtype_bytes(header->dtype);
    if (header->rank >= STOKER_RANK_MAX || (header->is_image && header->rank != 3))
        return 0;
    for (uint32_t axis = 0; axis < header->rank; axis++) {
        if (__builtin_mul_overflow(bytes, header->shape[axis], &bytes) ||
            bytes > STK_SHARD_ROW_BYTES_MAX)
            return 0;
    }
    return bytes;
}

uint64_t stk_shard_index_bytes(uint64_t count, uint32_t names_bytes)
{
    return stk_shard_align(count * STK_SHARD_ENTRY_BYTES + names_bytes, STK_SHARD_BLOCK_BYTES);
}

uint32_t stk_shard_alignment(uint64_t row_bytes)
{
    uint32_t alignment = 8; /* a gap is half of it on the average */
    while (alignment < STK_SHARD_ALIGNMENT_MAX && (uint64_t)alignment * 2 * 8 <= row_bytes)
        alignment *= 2;
    return alignment;
}

/* ---- header --------------------------------------------------------------------- */

static void store_row(uint8_t *to, const struct stk_shard_header *header)
{
    to[AT_DTYPE] = (uint8_t)header->dtype;
    to[AT_RANK] = (uint8_t)header->rank;
    to[AT_LABEL_DTYPE] = (uint8_t)header->label_dtype;
    to[AT_IS_IMAGE] = header->is_image ? 1 : 0;
    for (uint32_t axis = 0; axis < STOKER_RANK_MAX; axis++)
        stk_store_le64(to + AT_SHAPE + 8 * (size_t)axis, header->shape[axis]);
}

void stk_shard_header_store(uint8_t *to, const struct stk_shard_header *header)
{
    stk_shard_begin_store(to, STK_SHARD_VERSION);
    stk_store_le32(to + STK_SHARD_AT_NEEDS,
                   header->needs | (header->name[0] != '\0' ? STK_SHARD_NAMED : 0));
    stk_store_le32(to + STK_SHARD_AT_FLAGS, header->flags);
    stk_store_le64(to + STK_SHARD_AT_COUNT, header->count);
    stk_store_le64(to + STK_SHARD_AT_FILE_BYTES, header->file_bytes);
    stk_store_le64(to + STK_SHARD_AT_INDEX, header->index_at);
    stk_store_le32(to + STK_SHARD_AT_ALIGNMENT, header->alignment);
    store_row(to, header);
    stk_store_le32(to + AT_CLASS_COUNT, header->class_count);
    stk_store_le32(to + AT_LONGEST, header->longest_bytes);
    stk_store_le64(to + AT_FIRST, header->first);
    stk_store_le64(to + AT_SOURCE_FIRST, header->source_first);
    stk_store_le64(to + AT_SOURCE_COUNT, header->source_count);
    stk_store_le64(to + AT_SET_ID, header->set_id);
    stk_store_le32(to + AT_NUMBER, header->number);
    stk_store_le32(to + AT_INDEX_SUM, header->index_sum);
    stk_store_le32(to + AT_NAMES_BYTES, header->names_bytes);
    memcpy(to + AT_RESUME, header->resume, STK_SHARD_RESUME_BYTES);
    memcpy(to + AT_NAME, header->name, strlen(header->name));
    stk_shard_begin_sum(to);
}

static void load_fields(struct stk_shard_header *out, const uint8_t *from)
{
    *out = (struct stk_shard_header){
        .needs = stk_load_le32(from + STK_SHARD_AT_NEEDS) & ~STK_SHARD_NAMED,
        .flags = stk_load_le32(from + STK_SHARD_AT_FLAGS),
        .count = stk_load_le64(from + STK_SHARD_AT_COUNT),
        .file_bytes = stk_load_le64(from + STK_SHARD_AT_FILE_BYTES),
        .index_at = stk_load_le64(from + STK_SHARD_AT_INDEX),
        .index_sum = stk_load_le32(from + AT_INDEX_SUM),
        .names_bytes = stk_load_le32(from + AT_NAMES_BYTES),
        .alignment = stk_load_le32(from + STK_SHARD_AT_ALIGNMENT),
        .longest_bytes = stk_load_le32(from + AT_LONGEST),
        .dtype = (stoker_dtype)from[AT_DTYPE],
        .label_dtype = (stoker_dtype)from[AT_LABEL_DTYPE],
        .rank = from[AT_RANK],
        .is_image = from[AT_IS_IMAGE] != 0,
        .class_count = stk_load_le32(from + AT_CLASS_COUNT),
        .number = stk_load_le32(from + AT_NUMBER),
        .first = stk_load_le64(from + AT_FIRST),
        .source_first = stk_load_le64(from + AT_SOURCE_FIRST),
        .source_count = stk_load_le64(from + AT_SOURCE_COUNT),
        .set_id = stk_load_le64(from + AT_SET_ID),
    };
    for (uint32_t axis = 0; axis < STOKER_RANK_MAX; axis++)
        out->shape[axis] = stk_load_le64(from + AT_SHAPE + 8 * (size_t)axis);
    memcpy(out->resume, from + AT_RESUME, STK_SHARD_RESUME_BYTES);
    memcpy(out->name, from + AT_NAME, STOKER_FIELD_NAME_BYTES - 1);
}

/* One that the header announces, ended and filled up with zeros. stoker_dataset_create() checks its characters. */
static bool name_is_good(const uint8_t *from)
{
    const bool named = (stk_load_le32(from + STK_SHARD_AT_NEEDS) & STK_SHARD_NAMED) != 0;
    const size_t length = strnlen((const char *)from + AT_NAME, STOKER_FIELD_NAME_BYTES);
    return named == (length > 0) && length < STOKER_FIELD_NAME_BYTES &&
           stk_shard_all_zero(from + AT_NAME + length, STOKER_FIELD_NAME_BYTES - length);
}

/* What a row and its label are; PNG and JPEG know pixels of 8 bits only. */
static const char *wrong_in_row(const struct stk_shard_header *header)
{
    const bool classes = header->label_dtype == STOKER_DTYPE_INT64;
    const bool pixels = header->is_image && header->dtype == STOKER_DTYPE_UINT8 &&
                        (header->shape[2] == 1 || header->shape[2] == 3 || header->shape[2] == 4);
    const uint32_t images = 1U << STK_SHARD_PNG | 1U << STK_SHARD_JPEG;
    if (stk_shard_row_bytes(header) == 0)
        return "the shape of a row";
    if (!classes && header->label_dtype != STOKER_DTYPE_FLOAT32 &&
        header->label_dtype != STOKER_DTYPE_NONE)
        return "the type of the labels";
    if (!classes && header->class_count != 0)
        return "classes without labels";
    if ((header->needs & images) != 0 && !pixels)
        return "image records, but rows that are no images";
    return NULL;
}

/* Sizes are bounded by the file's before they are multiplied. */
static const char *wrong_in_places(const struct stk_shard_header *header)
{
    if (header->count == 0 || header->count > header->file_bytes / STK_SHARD_ENTRY_BYTES)
        return "the number of records";
    if (header->names_bytes > STK_SHARD_NAMES_MAX || header->class_count > STK_SHARD_CLASSES_MAX)
        return "the classes";
    const struct stk_shard_numbers numbers = {
        .alignment = header->alignment,
        .longest_bytes = header->longest_bytes,
        .count = header->count,
        .file_bytes = header->file_bytes,
        .index_at = header->index_at,
        .index_bytes = stk_shard_index_bytes(header->count, header->names_bytes),
        .first = header->first,
        .source_first = header->source_first,
        .source_count = header->source_count,
    };
    return stk_shard_numbers_wrong(&numbers);
}

int stk_shard_header_load(struct stk_shard_header *out, const uint8_t *from, uint64_t file_bytes,
                          const char **what)
{
    const int rc =
        stk_shard_begin_check(from, file_bytes, STK_SHARD_VERSION, STK_SHARD_NEEDS_KNOWN, what);
    if (rc != STOKER_OK)
        return rc;
    load_fields(out, from);
    *what = "the header's own fields";
    if (from[AT_IS_IMAGE] > 1 || !name_is_good(from) ||
        !stk_shard_all_zero(from + AT_ZEROS, STK_SHARD_AT_SUM - AT_ZEROS) ||
        !stk_shard_all_zero(from + AT_NAMES_BYTES + 4, AT_RESUME - AT_NAMES_BYTES - 4))
        return STOKER_EFORMAT;
    *what = wrong_in_places(out);
    if (*what == NULL)
        *what = wrong_in_row(out);
    return *what == NULL ? STOKER_OK : STOKER_EFORMAT;
}

/* ---- entries -------------------------------------------------------------------- */

void stk_shard_entry_store(uint8_t *to, const struct stk_shard_entry *entry,
                           stoker_dtype label_dtype)
{
    uint32_t bits = 0;
    memset(to, 0, STK_SHARD_ENTRY_BYTES);
    stk_store_le64(to + IN_OFFSET, entry->offset);
    stk_store_le32(to + IN_BYTES, entry->bytes);
    stk_store_le32(to + IN_SUM, entry->sum);
    to[IN_CODEC] = (uint8_t)entry->codec;
    memcpy(&bits, &entry->label.value, sizeof(bits));
    if (label_dtype == STOKER_DTYPE_INT64)
        stk_store_le64(to + IN_LABEL, (uint64_t)entry->label.index);
    else if (label_dtype == STOKER_DTYPE_FLOAT32)
        stk_store_le32(to + IN_LABEL, bits);
}

/* A label as its type says; false if it is none. */
static bool load_label(stoker_label *out, const uint8_t *from,
                       const struct stk_shard_header *header)
{
    const uint32_t bits = stk_load_le32(from);
    *out = (stoker_label){ .index = 0 };
    switch (header->label_dtype) {
    case STOKER_DTYPE_INT64:
        out->index = (int64_t)stk_load_le64(from);
        return header->class_count == 0 ||
               (out->index >= 0 && out->index < (int64_t)header->class_count);
    case STOKER_DTYPE_FLOAT32:
        memcpy(&out->value, &bits, sizeof(bits));
        return stk_load_le32(from + 4) == 0;
    default:
        return stk_load_le64(from) == 0;
    }
}

static bool size_fits(const struct stk_shard_entry *entry, uint64_t row_bytes)
{
    if (entry->codec == STK_SHARD_RAW)
        return entry->bytes == row_bytes;
    if (entry->codec == STK_SHARD_LZ4)
        return row_bytes <= (uint64_t)entry->bytes * LZ4_RATIO_MAX;
    if (entry->codec == STK_SHARD_ZSTD)
        return row_bytes <= (uint64_t)entry->bytes * ZSTD_RATIO_MAX;
    return true;
}

int stk_shard_entry_load(struct stk_shard_entry *out, const uint8_t *from,
                         const struct stk_shard_header *header, uint64_t row_bytes,
                         uint64_t *free_at, const char **what)
{
    assert(*free_at <= header->index_at);
    const uint8_t codec = from[IN_CODEC];
    *out = (struct stk_shard_entry){ .offset = stk_load_le64(from + IN_OFFSET),
                                     .bytes = stk_load_le32(from + IN_BYTES),
                                     .sum = stk_load_le32(from + IN_SUM),
                                     .codec = (enum stk_shard_codec)codec };
    *what = NULL;
    if (codec >= STK_SHARD_RECORD_CODECS || (header->needs >> codec & 1) == 0)
        *what = "a codec that the header does not name";
    else if (!stk_shard_all_zero(from + IN_ZEROS, IN_LABEL - IN_ZEROS))
        *what = "bytes that must be 0";
    else if (out->offset < *free_at || out->offset % header->alignment != 0)
        *what = "a record that overlaps the one before, or is not aligned";
    else if (out->bytes == 0 || out->bytes > header->longest_bytes ||
             out->offset > header->index_at || out->bytes > header->index_at - out->offset)
        *what = "a record that is empty, too long or not among the records";
    else if (!size_fits(out, row_bytes))
        *what = "a record whose bytes cannot be a row";
    else if (!load_label(&out->label, from + IN_LABEL, header))
        *what = "a label that is no class";
    if (*what != NULL)
        return STOKER_EFORMAT;
    *free_at = out->offset + out->bytes;
    return STOKER_OK;
}
