/* layout.c - see layout.h. */
#include "datasets/shards/layout.h"

#include <assert.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c/crc32c.h"

static const uint8_t magic[8] = { 0x89, 'S', 'T', 'K', '\r', '\n', 0x1A, '\n' };

/* Offsets in the header. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_HEADER_BYTES = 12,
    AT_NEEDS = 16,
    AT_HINTS = 24, /* features that a reader may ignore: none so far */
    AT_FILE_BYTES = 32,
    AT_INDEX = 40,
    AT_INDEX_SUM = 48,
    AT_ALIGNMENT = 52,
    AT_LONGEST = 56,
    AT_COUNT = 64,
    AT_FIELD_COUNT = 72,
    AT_PART_COUNT = 76,
    AT_NAMES_BYTES = 80,
    AT_SET_ID = 88,
    AT_NUMBER = 96,
    AT_SHARD_COUNT = 100,
    AT_SOURCE_FIRST = 104,
    AT_SOURCE_COUNT = 112,
    AT_BLOCK_COUNT = 120,
    AT_BLOCK_BYTES = 128,
    AT_ZEROS = 136,
    AT_SUM = 4092
};

/* Offsets in a field. */
enum {
    IN_NAME = 0,
    IN_KIND = 64,
    IN_DTYPE = 65,
    IN_RANK = 66,
    IN_FLAGS = 67,
    IN_PART = 68,
    IN_CLASSES = 72,
    IN_FIELD_ZEROS = 76,
    IN_SHAPE = 80,
    IN_FIELD_END = 144
};
enum { VARIES = 1, SIZES_DIFFER = 2 }; /* its flags */

/* Offsets in the entry of a block. */
enum { OF_OFFSET = 0, OF_STORED = 8, OF_BYTES = 12, OF_SUM = 16, OF_CODEC = 20, OF_ZEROS = 21 };

/* Offsets in the entry of a part. */
enum { IN_OFFSET = 0, IN_BYTES = 8, IN_SUM = 16, IN_CODEC = 20, IN_PART_ZEROS = 21 };

/* Nothing unpacks to more than this times its bytes. */
enum { LZ4_RATIO_MAX = 255, ZSTD_RATIO_MAX = 32768 };

static bool all_zero(const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (from[i] != 0)
            return false;
    }
    return true;
}

/* ---- sizes ---------------------------------------------------------------------- */

static uint64_t bytes_from_axis(const struct stk_shard_field *field, uint32_t first_axis)
{
    uint64_t bytes = stoker_dtype_bytes(field->dtype);
    for (uint32_t axis = first_axis; axis < field->rank; axis++) {
        if (__builtin_mul_overflow(bytes, field->shape[axis], &bytes) ||
            bytes > STK_SHARD_VALUE_BYTES_MAX)
            return 0;
    }
    return bytes;
}

uint64_t stk_shard_value_bytes(const struct stk_shard_field *field)
{
    return bytes_from_axis(field, 0);
}

uint64_t stk_shard_entry_bytes(const struct stk_shard_field *field)
{
    return bytes_from_axis(field, 1);
}

bool stk_shard_is_pixels(const struct stk_shard_field *field)
{
    return field->kind == STOKER_FIELD_KIND_IMAGE || field->kind == STOKER_FIELD_KIND_MASK;
}

uint64_t stk_shard_blocks_at(const struct stk_shard_header *header)
{
    return (uint64_t)header->field_count * STK_SHARD_FIELD_BYTES;
}

uint64_t stk_shard_parts_at(const struct stk_shard_header *header)
{
    return stk_shard_blocks_at(header) + header->block_count * STK_SHARD_BLOCK_BYTES;
}

uint64_t stk_shard_words_at(const struct stk_shard_header *header)
{
    return stk_shard_parts_at(header) + header->count * header->part_count * STK_SHARD_PART_BYTES;
}

uint64_t stk_shard_names_at(const struct stk_shard_header *header)
{
    const uint64_t words = header->field_count - header->part_count;
    return stk_shard_words_at(header) + header->count * words * STK_SHARD_WORD_BYTES;
}

bool stk_shard_index_bytes(const struct stk_shard_header *header, uint64_t *bytes)
{
    if (header->count > (UINT64_C(1) << 61) / STOKER_FIELDS_MAX / STK_SHARD_PART_BYTES ||
        header->block_count > header->count)
        return false;
    *bytes =
        stk_shard_align(stk_shard_names_at(header) + header->names_bytes, STK_SHARD_PAGE_BYTES);
    return true;
}

uint32_t stk_shard_alignment(uint64_t row_bytes)
{
    uint32_t alignment = 8; /* a gap is half of it on the average */
    while (alignment < STK_SHARD_ALIGNMENT_MAX && (uint64_t)alignment * 2 * 8 <= row_bytes)
        alignment *= 2;
    return alignment;
}

/* ---- header --------------------------------------------------------------------- */

void stk_shard_header_store(uint8_t *to, const struct stk_shard_header *header)
{
    memset(to, 0, STK_SHARD_PAGE_BYTES);
    memcpy(to + AT_MAGIC, magic, sizeof(magic));
    stk_store_le32(to + AT_VERSION, STK_SHARD_VERSION);
    stk_store_le32(to + AT_HEADER_BYTES, STK_SHARD_PAGE_BYTES);
    stk_store_le64(to + AT_NEEDS, header->needs);
    stk_store_le64(to + AT_FILE_BYTES, header->file_bytes);
    stk_store_le64(to + AT_INDEX, header->index_at);
    stk_store_le32(to + AT_INDEX_SUM, header->index_sum);
    stk_store_le32(to + AT_ALIGNMENT, header->alignment);
    stk_store_le64(to + AT_LONGEST, header->longest_bytes);
    stk_store_le64(to + AT_COUNT, header->count);
    stk_store_le32(to + AT_FIELD_COUNT, header->field_count);
    stk_store_le32(to + AT_PART_COUNT, header->part_count);
    stk_store_le64(to + AT_NAMES_BYTES, header->names_bytes);
    stk_store_le64(to + AT_SET_ID, header->set_id);
    stk_store_le32(to + AT_NUMBER, header->number);
    stk_store_le32(to + AT_SHARD_COUNT, header->shard_count);
    stk_store_le64(to + AT_SOURCE_FIRST, header->source_first);
    stk_store_le64(to + AT_SOURCE_COUNT, header->source_count);
    stk_store_le64(to + AT_BLOCK_COUNT, header->block_count);
    stk_store_le64(to + AT_BLOCK_BYTES, header->block_bytes);
    stk_store_le32(to + AT_SUM, stk_crc32c(0, to, AT_SUM));
}

static void load_numbers(struct stk_shard_header *out, const uint8_t *from)
{
    *out = (struct stk_shard_header){
        .needs = stk_load_le64(from + AT_NEEDS),
        .file_bytes = stk_load_le64(from + AT_FILE_BYTES),
        .index_at = stk_load_le64(from + AT_INDEX),
        .index_sum = stk_load_le32(from + AT_INDEX_SUM),
        .alignment = stk_load_le32(from + AT_ALIGNMENT),
        .longest_bytes = stk_load_le64(from + AT_LONGEST),
        .count = stk_load_le64(from + AT_COUNT),
        .field_count = stk_load_le32(from + AT_FIELD_COUNT),
        .part_count = stk_load_le32(from + AT_PART_COUNT),
        .names_bytes = stk_load_le64(from + AT_NAMES_BYTES),
        .set_id = stk_load_le64(from + AT_SET_ID),
        .number = stk_load_le32(from + AT_NUMBER),
        .shard_count = stk_load_le32(from + AT_SHARD_COUNT),
        .source_first = stk_load_le64(from + AT_SOURCE_FIRST),
        .source_count = stk_load_le64(from + AT_SOURCE_COUNT),
        .block_count = stk_load_le64(from + AT_BLOCK_COUNT),
        .block_bytes = stk_load_le64(from + AT_BLOCK_BYTES),
    };
}

static int fail_with_rule(int code, const char **what, const char *text)
{
    *what = text;
    return code;
}

/* Where the last part ends at the latest. */
static uint64_t parts_end(const struct stk_shard_header *header)
{
    return (header->needs & STK_SHARD_NEEDS_BLOCKS) != 0 ? header->block_bytes : header->index_at;
}

/* Returns NULL, or which number breaks a rule. */
static const char *wrong_number(const struct stk_shard_header *header)
{
    const uint32_t alignment = header->alignment;
    uint64_t index_bytes = 0;
    if (header->field_count == 0 || header->field_count > STOKER_FIELDS_MAX ||
        header->part_count == 0 || header->part_count > header->field_count)
        return "the header's number of fields or parts";
    if (header->names_bytes > STK_SHARD_NAMES_MAX)
        return "the header's names of classes are too long";
    if (!stk_shard_index_bytes(header, &index_bytes))
        return "the header's number of samples or blocks";
    if ((header->block_count > 0) != (header->block_bytes > 0) ||
        (header->block_count > 0 && (header->needs & STK_SHARD_NEEDS_BLOCKS) == 0))
        return "the header has blocks, and has none";
    if (alignment == 0 || alignment > STK_SHARD_ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)
        return "the header's alignment is not a power of two up to 4096";
    if (header->index_at < STK_SHARD_PAGE_BYTES || header->index_at % STK_SHARD_PAGE_BYTES != 0 ||
        header->index_at > header->file_bytes ||
        header->file_bytes - header->index_at != index_bytes)
        return "the header puts the index where it cannot be";
    if (header->longest_bytes > parts_end(header))
        return "the header's longest part is longer than all parts";
    if (header->number >= header->shard_count || header->source_count < header->count ||
        header->source_first > UINT64_MAX - header->source_count)
        return "the header's place in the set is impossible";
    return NULL;
}

int stk_shard_header_load(struct stk_shard_header *out, const uint8_t *from, uint64_t file_bytes,
                          const char **what)
{
    if (file_bytes < STK_SHARD_PAGE_BYTES)
        return fail_with_rule(STOKER_ETRUNCATED, what, "the file ends inside its header");
    if (memcmp(from + AT_MAGIC, magic, sizeof(magic)) != 0)
        return fail_with_rule(STOKER_EMAGIC, what,
                              "not a shard: it does not begin with a shard's magic number");
    if (stk_load_le32(from + AT_VERSION) != STK_SHARD_VERSION)
        return fail_with_rule(STOKER_ENOTSUP, what,
                              "another version of the format; pack the data again");
    if (stk_load_le32(from + AT_SUM) != stk_crc32c(0, from, AT_SUM))
        return fail_with_rule(STOKER_ECORRUPT, what, "the header does not match its checksum");
    load_numbers(out, from);
    if ((out->needs & ~STK_SHARD_NEEDS_KNOWN) != 0)
        return fail_with_rule(STOKER_ENOTSUP, what, "it needs an unknown feature");
    if (out->file_bytes > file_bytes)
        return fail_with_rule(STOKER_ETRUNCATED, what, "the file is shorter than its header says");
    if (out->file_bytes < file_bytes)
        return fail_with_rule(STOKER_EOVERSIZE, what,
                              "the file has bytes after the end that its header names");
    if (stk_load_le32(from + AT_HEADER_BYTES) != STK_SHARD_PAGE_BYTES ||
        !all_zero(from + AT_ZEROS, AT_SUM - AT_ZEROS))
        return fail_with_rule(STOKER_EFORMAT, what, "the header has bytes of another version");
    *what = wrong_number(out);
    if (*what != NULL)
        return STOKER_EFORMAT;
    return out->longest_bytes < UINT32_MAX
               ? STOKER_OK
               : fail_with_rule(STOKER_ELIMIT, what, "a part of over 4 GiB");
}

/* ---- fields --------------------------------------------------------------------- */

void stk_shard_field_store(uint8_t *to, const struct stk_shard_field *field)
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

/* Names and kinds are checked again by stoker_dataset_create(). */
static const char *wrong_in_field(const struct stk_shard_field *field,
                                  const struct stk_shard_header *header)
{
    const bool word = field->part == STOKER_NO_PART;
    if (memchr(field->name, '\0', sizeof(field->name)) == NULL)
        return "a field's name";
    if (field->rank >= STOKER_RANK_MAX || stk_shard_value_bytes(field) == 0 ||
        (field->varies && field->rank == 0))
        return "the shape of a field";
    if (!word && field->part >= header->part_count)
        return "a field of a part that is not there";
    if (word && (field->rank != 0 || field->kind != STOKER_FIELD_KIND_ARRAY))
        return "a word that is more than one number";
    if (field->class_count > STK_SHARD_CLASSES_MAX)
        return "the classes of a field";
    if (stk_shard_is_pixels(field) && field->rank != 3)
        return "an image that is not height, width and channels";
    return field->sizes_differ &&
                   (!stk_shard_is_pixels(field) || field->dtype != STOKER_DTYPE_UINT8)
               ? "sizes that differ, but no image files"
               : NULL;
}

int stk_shard_field_load(struct stk_shard_field *out, const uint8_t *from,
                         const struct stk_shard_header *header, const char **what)
{
    *out = (struct stk_shard_field){ .kind = (stoker_field_kind)from[IN_KIND],
                                     .dtype = (stoker_dtype)from[IN_DTYPE],
                                     .rank = from[IN_RANK],
                                     .varies = (from[IN_FLAGS] & VARIES) != 0,
                                     .sizes_differ = (from[IN_FLAGS] & SIZES_DIFFER) != 0,
                                     .part = stk_load_le32(from + IN_PART),
                                     .class_count = stk_load_le32(from + IN_CLASSES) };
    memcpy(out->name, from + IN_NAME, sizeof(out->name));
    for (uint32_t axis = 0; axis < STOKER_RANK_MAX; axis++)
        out->shape[axis] = stk_load_le64(from + IN_SHAPE + 8 * (size_t)axis);
    const size_t name_bytes = strnlen(out->name, sizeof(out->name));
    if (from[IN_FLAGS] > (VARIES | SIZES_DIFFER) ||
        !all_zero(from + IN_NAME + name_bytes, sizeof(out->name) - name_bytes) ||
        !all_zero(from + IN_FIELD_ZEROS, IN_SHAPE - IN_FIELD_ZEROS) ||
        !all_zero(from + IN_FIELD_END, STK_SHARD_FIELD_BYTES - IN_FIELD_END))
        return fail_with_rule(STOKER_EFORMAT, what, "bytes of a field that must be 0");
    *what = wrong_in_field(out, header);
    return *what == NULL ? STOKER_OK : STOKER_EFORMAT;
}

/* ---- blocks --------------------------------------------------------------------- */

void stk_shard_block_store(uint8_t *to, const struct stk_shard_block *block)
{
    memset(to, 0, STK_SHARD_BLOCK_BYTES);
    stk_store_le64(to + OF_OFFSET, block->offset);
    stk_store_le32(to + OF_STORED, block->stored_bytes);
    stk_store_le32(to + OF_BYTES, block->bytes);
    stk_store_le32(to + OF_SUM, block->sum);
    to[OF_CODEC] = (uint8_t)block->codec;
}

static bool may_unpack(const struct stk_shard_block *block)
{
    const uint64_t stored = block->stored_bytes;
    return block->codec == STK_SHARD_RAW    ? block->bytes == stored
           : block->codec == STK_SHARD_LZ4  ? block->bytes <= stored * LZ4_RATIO_MAX
           : block->codec == STK_SHARD_ZSTD ? block->bytes <= stored * ZSTD_RATIO_MAX
                                            : false;
}

int stk_shard_block_load(struct stk_shard_block *out, const uint8_t *from,
                         const struct stk_shard_header *header, uint64_t *free_at, uint64_t *bytes,
                         const char **what)
{
    *out = (struct stk_shard_block){ .offset = stk_load_le64(from + OF_OFFSET),
                                     .stored_bytes = stk_load_le32(from + OF_STORED),
                                     .bytes = stk_load_le32(from + OF_BYTES),
                                     .sum = stk_load_le32(from + OF_SUM),
                                     .codec = from[OF_CODEC] };
    *what = NULL;
    if (out->codec >= STK_SHARD_CODECS || (header->needs >> out->codec & 1) == 0)
        *what = "a block with a codec that the header does not name";
    else if (!all_zero(from + OF_ZEROS, STK_SHARD_BLOCK_BYTES - OF_ZEROS))
        *what = "bytes of a block that must be 0";
    else if (out->offset < *free_at || out->offset > header->index_at ||
             out->stored_bytes > header->index_at - out->offset)
        *what = "a block that overlaps the one before, or is not among the blocks";
    else if (out->bytes == 0 || out->bytes > STK_SHARD_VALUE_BYTES_MAX || !may_unpack(out) ||
             out->bytes > header->block_bytes - *bytes)
        *what = "a block that cannot unpack to its bytes";
    if (*what != NULL)
        return STOKER_EFORMAT;
    *free_at = out->offset + out->stored_bytes;
    *bytes += out->bytes;
    return STOKER_OK;
}

/* ---- parts and words ------------------------------------------------------------ */

void stk_shard_part_store(uint8_t *to, const struct stk_shard_part *part)
{
    memset(to, 0, STK_SHARD_PART_BYTES);
    stk_store_le64(to + IN_OFFSET, part->offset);
    stk_store_le64(to + IN_BYTES, part->bytes);
    stk_store_le32(to + IN_SUM, part->sum);
    to[IN_CODEC] = (uint8_t)part->codec;
}

/* Image files have 8 bits a channel and 1, 3 or 4 channels. */
static bool fits_file(const struct stk_shard_field *field)
{
    return stk_shard_is_pixels(field) && field->dtype == STOKER_DTYPE_UINT8 &&
           (field->shape[2] == 1 || field->shape[2] == 3 || field->shape[2] == 4);
}

static bool size_fits(const struct stk_shard_part *part, const struct stk_shard_field *field)
{
    const uint64_t bytes = stk_shard_value_bytes(field);
    const uint64_t entry_bytes = stk_shard_entry_bytes(field);
    assert(entry_bytes > 0); /* a field that was loaded has bytes, and these divide them */
    switch (part->codec) {
    case STK_SHARD_RAW:
        return field->varies ? part->bytes <= bytes && part->bytes % entry_bytes == 0
                             : part->bytes == bytes;
    case STK_SHARD_LZ4:
        return !field->varies && bytes <= part->bytes * LZ4_RATIO_MAX;
    case STK_SHARD_ZSTD:
        return !field->varies && bytes <= part->bytes * ZSTD_RATIO_MAX;
    default:
        return fits_file(field) && part->bytes > 0;
    }
}

int stk_shard_part_load(struct stk_shard_part *out, const uint8_t *from,
                        const struct stk_shard_header *header, const struct stk_shard_field *field,
                        uint64_t *free_at, const char **what)
{
    const uint64_t end = parts_end(header);
    assert(*free_at <= end);
    *out = (struct stk_shard_part){ .offset = stk_load_le64(from + IN_OFFSET),
                                    .bytes = stk_load_le64(from + IN_BYTES),
                                    .sum = stk_load_le32(from + IN_SUM),
                                    .codec = from[IN_CODEC] };
    *what = NULL;
    if (out->codec >= STK_SHARD_CODECS || (header->needs >> out->codec & 1) == 0)
        *what = "a codec that the header does not name";
    else if (!all_zero(from + IN_PART_ZEROS, STK_SHARD_PART_BYTES - IN_PART_ZEROS))
        *what = "bytes of a part that must be 0";
    else if (out->offset < *free_at || out->offset % header->alignment != 0)
        *what = "a part that overlaps the one before, or is not aligned";
    else if (out->bytes > header->longest_bytes || out->offset > end ||
             out->bytes > end - out->offset)
        *what = "a part that is too long or not among the parts";
    else if (!size_fits(out, field))
        *what = "a part whose bytes cannot be its field";
    if (*what != NULL)
        return STOKER_EFORMAT;
    *free_at = out->offset + out->bytes;
    return STOKER_OK;
}

bool stk_shard_word_load(uint64_t *out, const uint8_t *from, const struct stk_shard_field *field)
{
    const size_t bytes = stoker_dtype_bytes(field->dtype);
    *out = stk_load_le64(from);
    return all_zero(from + bytes, STK_SHARD_WORD_BYTES - bytes) &&
           (field->class_count == 0 || *out < field->class_count);
}
