/* shard_files.h - shards put together by the description in datasets/README.md, not by the code
 * that reads them; and ways to spoil them.
 *
 *   a set of `shards` files, per_shard records each; record i is stk_shard_test_byte(i, 0..),
 *   label i % 3, of 4 x 6 x 1 bytes, or of any shape the test writes into the fields
 */
#ifndef STK_TEST_SHARD_FILES_H
#define STK_TEST_SHARD_FILES_H

#include <stoker/stoker.h>

#include "crc32c_by_bits.h"
#include "dataset_files.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "loader/codec/lz4.h"

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

/* A shard in memory: header, one block of records, one of index. */
struct stk_shard_image {
    uint8_t at[STK_SHARD_TEST_BYTES_MAX];
    size_t size;
    uint32_t count;
};

/* Compute both sums again, after the fields were changed. */
static inline void stk_shard_image_seal(struct stk_shard_image *image)
{
    const uint64_t index_at = stk_load_le64(image->at + 40);
    if (index_at < image->size)
        stk_store_le32(image->at + 164,
                       stk_crc32c_by_bits(image->at + index_at, image->size - index_at));
    stk_store_le32(image->at + 4092, stk_crc32c_by_bits(image->at, 4092));
}

static inline uint8_t *stk_shard_image_entry(struct stk_shard_image *image, uint32_t i)
{
    return image->at + STK_SHARD_TEST_INDEX_AT + 32 * (size_t)i;
}

/* Number `number` of `shards` shards of `count` records; record i has codec i % codecs (0 raw,
 * 1 LZ4). */
static inline void stk_shard_image_make(struct stk_shard_image *image, uint32_t number,
                                        uint32_t shards, uint32_t count, uint32_t codecs)
{
    static const uint8_t magic[8] = { 0x89, 'S', 'T', 'K', '\r', '\n', 0x1A, '\n' };
    static const char names[] = "ape\0bee\0cat"; /* and the 0 that ends it */
    uint8_t *at = image->at;
    uint32_t used = 4096;
    memset(at, 0, sizeof(image->at));
    image->count = count;
    image->size = STK_SHARD_TEST_INDEX_AT + 4096;
    memcpy(at, magic, sizeof(magic));
    stk_store_le32(at + 8, 1);
    stk_store_le32(at + 12, (1U << codecs) - 1);
    stk_store_le32(at + 16, number + 1 == shards ? 1 : 0);
    stk_store_le32(at + 20, 4096);
    stk_store_le64(at + 24, count);
    stk_store_le64(at + 32, image->size);
    stk_store_le64(at + 40, STK_SHARD_TEST_INDEX_AT);
    stk_store_le32(at + 48, 8);
    at[52] = STOKER_DTYPE_UINT8;
    at[53] = 3;
    at[54] = STOKER_DTYPE_INT64;
    at[55] = 1;
    stk_store_le32(at + 56, 3);
    stk_store_le32(at + 60, 64);
    stk_store_le64(at + 64, 4);
    stk_store_le64(at + 72, 6);
    stk_store_le64(at + 80, 1);
    stk_store_le64(at + 128, (uint64_t)number * count);
    stk_store_le64(at + 136, (uint64_t)number * count);
    stk_store_le64(at + 144, count);
    stk_store_le64(at + 152, 0x1234);
    stk_store_le32(at + 160, number);
    stk_store_le32(at + 168, sizeof(names));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t sample = (uint64_t)number * count + i;
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t *entry = stk_shard_image_entry(image, i);
        uint32_t bytes = STK_SHARD_TEST_ROW;
        stk_shard_test_row(sample, row);
        memcpy(at + used, row, sizeof(row));
        if (i % codecs == 1)
            bytes = (uint32_t)stk_lz4_pack(row, sizeof(row), 0, at + used, 64);
        stk_store_le64(entry, used);
        stk_store_le32(entry + 8, bytes);
        stk_store_le32(entry + 12, stk_crc32c_by_bits(at + used, bytes));
        entry[16] = (uint8_t)(i % codecs);
        stk_store_le64(entry + 24, sample % 3);
        used += (bytes + 7) / 8 * 8;
    }
    memcpy(stk_shard_image_entry(image, count), names, sizeof(names));
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
