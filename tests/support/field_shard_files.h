/* field_shard_files.h - shards of version 2 put together by the description in datasets/README.md, not by the code that
 * reads them.
 *
 *   field 0 "pair"    int16 [2], part 0        sample i: i, -i
 *   field 1 "text"    bytes, part 1            sample i: i % 4 letters 'a' + i
 *   field 2 "label"   int64, in the index      i % 3, with names
 */
#ifndef STK_TEST_FIELD_SHARD_FILES_H
#define STK_TEST_FIELD_SHARD_FILES_H

#include <stoker/stoker.h>

#include "crc32c_by_bits.h"
#include "dataset_files.h"
#include "loader/base/bytes.h"

enum {
    STK_FIELD_SHARD_INDEX_AT = 2 * 4096,
    STK_FIELD_SHARD_BYTES = 3 * 4096,
    STK_FIELD_SHARD_FIELDS = 3
};

struct stk_field_shard {
    uint8_t at[STK_FIELD_SHARD_BYTES];
    uint32_t count;
};

static inline void stk_field_shard_seal(struct stk_field_shard *shard)
{
    stk_store_le32(shard->at + 68,
                   stk_crc32c_by_bits(shard->at + STK_FIELD_SHARD_INDEX_AT,
                                      STK_FIELD_SHARD_BYTES - STK_FIELD_SHARD_INDEX_AT));
    stk_store_le32(shard->at + 4092, stk_crc32c_by_bits(shard->at, 4092));
}

static inline uint8_t *stk_field_shard_field(struct stk_field_shard *shard, uint32_t i)
{
    return shard->at + STK_FIELD_SHARD_INDEX_AT + 160 * (size_t)i;
}

static inline uint8_t *stk_field_shard_part(struct stk_field_shard *shard, uint32_t sample,
                                            uint32_t part)
{
    return stk_field_shard_field(shard, STK_FIELD_SHARD_FIELDS) + 24 * (2 * (size_t)sample + part);
}

static inline void stk_field_shard_put_field(struct stk_field_shard *shard, uint32_t i,
                                             const char *name, uint8_t kind, uint8_t dtype,
                                             uint8_t rank, uint64_t length, uint32_t part)
{
    uint8_t *field = stk_field_shard_field(shard, i);
    memcpy(field, name, strlen(name));
    field[64] = kind;
    field[65] = dtype;
    field[66] = rank;
    field[67] = kind == 3 ? 1 : 0;
    stk_store_le32(field + 68, part);
    stk_store_le32(field + 72, part == UINT32_MAX ? 3 : 0);
    stk_store_le64(field + 80, length);
}

/* Store a part at *used, and its entry. */
static inline void stk_field_shard_put_part(struct stk_field_shard *shard, uint32_t sample,
                                            uint32_t part, const void *bytes, uint32_t size,
                                            uint32_t *used)
{
    uint8_t *entry = stk_field_shard_part(shard, sample, part);
    if (size > 0)
        memcpy(shard->at + *used, bytes, size);
    stk_store_le64(entry, *used);
    stk_store_le32(entry + 8, size);
    stk_store_le32(entry + 12, stk_crc32c_by_bits(shard->at + *used, size));
    *used += (size + 7) / 8 * 8;
}

/* Number `number` of `shards` shards of `count` samples. */
static inline void stk_field_shard_make(struct stk_field_shard *shard, uint32_t number,
                                        uint32_t shards, uint32_t count)
{
    static const uint8_t magic[8] = { 0x89, 'S', 'T', 'K', '\r', '\n', 0x1A, '\n' };
    static const char names[] = "ape\0bee\0cat"; /* and the 0 that ends it */
    uint32_t used = 4096;
    uint8_t *at = shard->at;
    memset(at, 0, sizeof(shard->at));
    shard->count = count;
    memcpy(at, magic, sizeof(magic));
    stk_store_le32(at + 8, 2);
    stk_store_le32(at + 12, 1);
    stk_store_le32(at + 16, number + 1 == shards ? 1 : 0);
    stk_store_le32(at + 20, 4096);
    stk_store_le64(at + 24, count);
    stk_store_le64(at + 32, STK_FIELD_SHARD_BYTES);
    stk_store_le64(at + 40, STK_FIELD_SHARD_INDEX_AT);
    stk_store_le32(at + 48, 8);
    stk_store_le32(at + 52, STK_FIELD_SHARD_FIELDS);
    stk_store_le32(at + 56, 2);
    stk_store_le32(at + 60, 4);
    stk_store_le32(at + 64, sizeof(names));
    stk_store_le32(at + 72, number);
    stk_store_le64(at + 80, (uint64_t)number * count);
    stk_store_le64(at + 88, (uint64_t)number * count);
    stk_store_le64(at + 96, count);
    stk_store_le64(at + 104, 0x1234);
    stk_field_shard_put_field(shard, 0, "pair", 0, STOKER_DTYPE_INT16, 1, 2, 0);
    stk_field_shard_put_field(shard, 1, "text", 3, STOKER_DTYPE_UINT8, 1, 3, 1);
    stk_field_shard_put_field(shard, 2, "label", 0, STOKER_DTYPE_INT64, 0, 0, UINT32_MAX);
    uint8_t *label = stk_field_shard_part(shard, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t sample = number * count + i;
        const int16_t pair[2] = { (int16_t)sample, (int16_t) - (int)sample };
        char text[4];
        memset(text, 'a' + (int)sample, sizeof(text));
        stk_field_shard_put_part(shard, i, 0, pair, sizeof(pair), &used);
        stk_field_shard_put_part(shard, i, 1, text, sample % 4, &used);
        stk_store_le64(label + 8 * (size_t)i, sample % 3);
    }
    memcpy(label + 8 * (size_t)count, names, sizeof(names));
    stk_field_shard_seal(shard);
}

#endif
