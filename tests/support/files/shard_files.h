/* shard_files.h - shards put together by the description in docs/formats/shard_files.md, not by the
 * code that reads them; and ways to spoil them.
 *
 *   rows     field 0 "image"   uint8 [4][6][1], part 0   sample i: stk_shard_test_byte(i, 0..)
 *            field 1 "label"   int64, in the index       i % 3, with names
 *
 *   fields   field 0 "pair"    int16 [2], part 0         sample i: i, -i
 *            field 1 "text"    bytes, part 1             sample i: i % 4 letters 'a' + i
 *            field 2 "label"   int64, in the index       i % 3, with names
 */
#ifndef STK_TEST_SHARD_FILES_H
#define STK_TEST_SHARD_FILES_H

#include <stoker/stoker.h>

#include "dataset_files.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "loader/codec/lz4.h"
#include "loader/codec/zstd.h"
#include "support/crc32c_by_bits.h"

enum {
    STK_SHARD_TEST_ROW = 24,
    STK_SHARD_TEST_BYTES_MAX = 4 * 4096,
    STK_SHARD_TEST_INDEX_AT = 2 * 4096
};

/* Half of each row is the same byte, so that LZ4 has something to find. */
static inline uint8_t stk_shard_test_byte(uint64_t sample, uint32_t at)
{
    return at < 12 ? (uint8_t)sample : (uint8_t)(stk_mix64(sample * 65537U + at) >> 24);
}

static inline void stk_shard_test_row(uint64_t sample, uint8_t row[STK_SHARD_TEST_ROW])
{
    for (uint32_t at = 0; at < STK_SHARD_TEST_ROW; at++)
        row[at] = stk_shard_test_byte(sample, at);
}

/* A shard in memory: header, one block of parts, one of index. */
struct stk_shard_image {
    uint8_t at[STK_SHARD_TEST_BYTES_MAX];
    size_t size;
    uint32_t count;
    uint32_t parts; /* parts per sample; there is one field more, the label */
    uint32_t blocks;
    uint32_t used; /* end of the last part, aligned */
};

/* Compute both sums again, after something was changed. */
static inline void stk_shard_image_seal(struct stk_shard_image *image)
{
    const uint64_t index_at = stk_load_le64(image->at + 40);
    if (index_at < image->size)
        stk_store_le32(image->at + 48,
                       stk_crc32c_by_bits(image->at + index_at, image->size - index_at));
    stk_store_le32(image->at + 4092, stk_crc32c_by_bits(image->at, 4092));
}

static inline uint8_t *stk_shard_image_field(struct stk_shard_image *image, uint32_t field)
{
    return image->at + STK_SHARD_TEST_INDEX_AT + 160 * (size_t)field;
}

static inline uint8_t *stk_shard_image_block(struct stk_shard_image *image, uint32_t block)
{
    return stk_shard_image_field(image, image->parts + 1) + 24 * (size_t)block;
}

static inline uint8_t *stk_shard_image_part(struct stk_shard_image *image, uint32_t sample,
                                            uint32_t part)
{
    return stk_shard_image_block(image, image->blocks) +
           24 * ((size_t)sample * image->parts + part);
}

static inline uint8_t *stk_shard_image_label(struct stk_shard_image *image, uint32_t sample)
{
    return stk_shard_image_part(image, image->count, 0) + 8 * (size_t)sample;
}

/* Where the bytes of part 0 of a sample lie. */
static inline uint8_t *stk_shard_image_bytes(struct stk_shard_image *image, uint32_t sample)
{
    return image->at + stk_load_le64(stk_shard_image_part(image, sample, 0));
}

/* The entry of a part of `size` bytes that lies at `offset`. */
static inline void stk_shard_image_enter(struct stk_shard_image *image, uint32_t sample,
                                         uint32_t part, uint64_t offset, uint32_t size,
                                         uint8_t codec)
{
    uint8_t *entry = stk_shard_image_part(image, sample, part);
    stk_store_le64(entry, offset);
    stk_store_le64(entry + 8, size);
    stk_store_le32(entry + 16, stk_crc32c_by_bits(image->at + offset, size));
    entry[20] = codec;
    stk_store_le64(image->at + 16, stk_load_le64(image->at + 16) | 1U << codec);
    if (size > stk_load_le64(image->at + 56))
        stk_store_le64(image->at + 56, size);
}

/* Store a part behind the others, and its entry. */
static inline void stk_shard_image_put(struct stk_shard_image *image, uint32_t sample,
                                       uint32_t part, const void *bytes, uint32_t size,
                                       uint8_t codec)
{
    if (size > 0)
        memcpy(image->at + image->used, bytes, size);
    stk_shard_image_enter(image, sample, part, image->used, size, codec);
    image->used += (size + 7) / 8 * 8;
}

/* Forget all parts: others are put next. */
static inline void stk_shard_image_empty(struct stk_shard_image *image)
{
    memset(image->at + 4096, 0, STK_SHARD_TEST_INDEX_AT - 4096);
    stk_store_le64(image->at + 16, 0);
    stk_store_le64(image->at + 56, 0);
    image->used = 4096;
}

static inline void stk_shard_image_put_field(struct stk_shard_image *image, uint32_t number,
                                             const char *name, uint8_t kind, uint8_t dtype,
                                             uint8_t rank, uint64_t length, uint32_t part)
{
    uint8_t *field = stk_shard_image_field(image, number);
    memcpy(field, name, strlen(name));
    field[64] = kind;
    field[65] = dtype;
    field[66] = rank;
    field[67] = kind == STOKER_FIELD_KIND_BYTES ? 1 : 0;
    stk_store_le32(field + 68, part);
    stk_store_le32(field + 72, part == UINT32_MAX ? 3 : 0);
    stk_store_le64(field + 80, length);
}

/* Number `number` of `shards` shards of `count` samples, without parts and blocks. */
static inline void stk_shard_image_begin(struct stk_shard_image *image, uint32_t number,
                                         uint32_t shards, uint32_t count, uint32_t parts,
                                         uint32_t blocks)
{
    static const uint8_t magic[8] = { 0x89, 'S', 'T', 'K', '\r', '\n', 0x1A, '\n' };
    static const char names[] = "ape\0bee\0cat"; /* and the 0 that ends it */
    uint8_t *at = image->at;
    memset(at, 0, sizeof(image->at));
    image->count = count;
    image->parts = parts;
    image->blocks = blocks;
    image->size = STK_SHARD_TEST_INDEX_AT + 4096;
    image->used = 4096;
    memcpy(at, magic, sizeof(magic));
    stk_store_le32(at + 8, 3);
    stk_store_le32(at + 12, 4096);
    stk_store_le64(at + 32, image->size);
    stk_store_le64(at + 40, STK_SHARD_TEST_INDEX_AT);
    stk_store_le32(at + 52, 8);
    stk_store_le64(at + 64, count);
    stk_store_le32(at + 72, parts + 1);
    stk_store_le32(at + 76, parts);
    stk_store_le64(at + 80, sizeof(names));
    stk_store_le64(at + 88, 0x1234);
    stk_store_le32(at + 96, number);
    stk_store_le32(at + 100, shards);
    stk_store_le64(at + 104, (uint64_t)number * count);
    stk_store_le64(at + 112, count);
    stk_shard_image_put_field(image, parts, "label", 0, STOKER_DTYPE_INT64, 0, 0, UINT32_MAX);
    for (uint32_t i = 0; i < count; i++)
        stk_store_le64(stk_shard_image_label(image, i), ((uint64_t)number * count + i) % 3);
    memcpy(stk_shard_image_label(image, count), names, sizeof(names));
}

/* Its only part is the row. */
static inline void stk_shard_image_begin_rows(struct stk_shard_image *image, uint32_t number,
                                              uint32_t shards, uint32_t count, uint32_t blocks)
{
    stk_shard_image_begin(image, number, shards, count, 1, blocks);
    stk_shard_image_put_field(image, 0, "image", STOKER_FIELD_KIND_IMAGE, STOKER_DTYPE_UINT8, 3, 4,
                              0);
    stk_store_le64(stk_shard_image_field(image, 0) + 88, 6);
    stk_store_le64(stk_shard_image_field(image, 0) + 96, 1);
}

/* A shard of rows; row i has codec i % codecs (0 raw, 1 LZ4). */
static inline void stk_shard_image_make(struct stk_shard_image *image, uint32_t number,
                                        uint32_t shards, uint32_t count, uint32_t codecs)
{
    stk_shard_image_begin_rows(image, number, shards, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t packed[64];
        stk_shard_test_row((uint64_t)number * count + i, row);
        if (i % codecs == 1)
            stk_shard_image_put(image, i, 0, packed,
                                (uint32_t)stk_lz4_pack(row, sizeof(row), 0, packed, sizeof(packed)),
                                1);
        else
            stk_shard_image_put(image, i, 0, row, sizeof(row), 0);
    }
    stk_shard_image_seal(image);
}

/* Store block b behind the others, with codec 0 (raw), 1 (LZ4) or 4 (Zstandard) in turn if this
 * build has them, and enter it. */
static inline void stk_shard_image_put_block(struct stk_shard_image *image, uint32_t b,
                                             const uint8_t *rows, uint32_t bytes)
{
    uint8_t *entry = stk_shard_image_block(image, b);
    uint8_t *to = image->at + image->used;
    const size_t room = STK_SHARD_TEST_INDEX_AT - image->used;
    uint8_t codec = (uint8_t[]){ 0, 1, 4 }[b % 3];
    size_t stored = codec == 1   ? stk_lz4_pack(rows, bytes, 9, to, room)
                    : codec == 4 ? stk_zstd_pack(rows, bytes, 3, to, room)
                                 : 0;
    if (stored == 0) {
        codec = 0;
        stored = bytes;
        memcpy(to, rows, bytes);
    }
    stk_store_le64(entry, image->used);
    stk_store_le32(entry + 8, (uint32_t)stored);
    stk_store_le32(entry + 12, bytes);
    stk_store_le32(entry + 16, stk_crc32c_by_bits(rows, bytes));
    entry[20] = codec;
    stk_store_le64(image->at + 16, stk_load_le64(image->at + 16) | UINT64_C(1) << codec);
    stk_store_le64(image->at + 128, stk_load_le64(image->at + 128) + bytes);
    image->used += (uint32_t)stored;
}

/* A shard of rows in blocks of `each` rows. */
static inline void stk_shard_image_make_blocks(struct stk_shard_image *image, uint32_t number,
                                               uint32_t shards, uint32_t count, uint32_t each)
{
    uint8_t rows[STK_SHARD_TEST_BYTES_MAX];
    stk_shard_image_begin_rows(image, number, shards, count, (count + each - 1) / each);
    stk_store_le64(image->at + 16, 1 | UINT64_C(1) << 32);
    stk_store_le32(image->at + 52, 1);
    stk_store_le64(image->at + 56, STK_SHARD_TEST_ROW);
    stk_store_le64(image->at + 120, image->blocks);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *row = rows + i * STK_SHARD_TEST_ROW;
        uint8_t *entry = stk_shard_image_part(image, i, 0);
        stk_shard_test_row((uint64_t)number * count + i, row);
        stk_store_le64(entry, i * (uint64_t)STK_SHARD_TEST_ROW);
        stk_store_le64(entry + 8, STK_SHARD_TEST_ROW);
        stk_store_le32(entry + 16, stk_crc32c_by_bits(row, STK_SHARD_TEST_ROW));
    }
    for (uint32_t b = 0; b < image->blocks; b++) {
        const uint32_t left = count - b * each;
        stk_shard_image_put_block(image, b, rows + (size_t)b * each * STK_SHARD_TEST_ROW,
                                  (left < each ? left : each) * STK_SHARD_TEST_ROW);
    }
    stk_shard_image_seal(image);
}

/* A shard of fields. */
static inline void stk_shard_image_make_fields(struct stk_shard_image *image, uint32_t number,
                                               uint32_t shards, uint32_t count)
{
    stk_shard_image_begin(image, number, shards, count, 2, 0);
    stk_shard_image_put_field(image, 0, "pair", 0, STOKER_DTYPE_INT16, 1, 2, 0);
    stk_shard_image_put_field(image, 1, "text", STOKER_FIELD_KIND_BYTES, STOKER_DTYPE_UINT8, 1, 3,
                              1);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t sample = number * count + i;
        const int16_t pair[2] = { (int16_t)sample, (int16_t) - (int)sample };
        char text[4];
        memset(text, 'a' + (int)sample, sizeof(text));
        stk_shard_image_put(image, i, 0, pair, sizeof(pair), 0);
        stk_shard_image_put(image, i, 1, text, sample % 4, 0);
    }
    stk_shard_image_seal(image);
}

static inline void stk_shard_image_write(const struct stk_shard_image *image,
                                         const struct stk_directory *directory, const char *name)
{
    stk_file_write(directory, name, image->at, image->size);
}

/* Open shards:DIR?parameters. */
static inline int stk_shard_test_open(stoker_dataset **out, const struct stk_directory *directory,
                                      const char *parameters, stoker_error *error)
{
    char spec[512];
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = 1 << 20 };
    (void)snprintf(spec, sizeof(spec), "shards:%s%s", directory->path, parameters);
    return stoker_dataset_open(out, spec, &options, error);
}

#endif
