/* block_set.h - a data set of 300 rows of 40 bytes in a file of blocks whose every byte is known.
 *
 *   unpacked   │ row 0 │ row 1 │ ...         blocks of 293 bytes: rows cross them
 *              or of 280 bytes, 7 rows, which the data set then declares
 *   stored     5 bytes │ block 0, as is │ 5 bytes │ block 1, LZ4 │ 5 bytes │ block 2, Zstandard ...
 *
 * Static functions in a header, without Criterion, as in scenario.h.
 */
#ifndef STK_TEST_BLOCK_SET_H
#define STK_TEST_BLOCK_SET_H

#include <assert.h>
#include <sys/mman.h>

#include "loader/base/crc32c/crc32c.h"
#include "loader/codec/lz4.h"
#include "loader/codec/zstd.h"
#include "support/runs/scenario.h"

enum {
    STK_BLOCK_ROWS = 300,
    STK_BLOCK_ROW_BYTES = 40,
    STK_BLOCK_UNPACKED = STK_BLOCK_ROWS * STK_BLOCK_ROW_BYTES,
    STK_BLOCK_BYTES = 293,
    STK_BLOCK_COUNT = (STK_BLOCK_UNPACKED + STK_BLOCK_BYTES - 1) / STK_BLOCK_BYTES,
    STK_BLOCK_WHOLE_ROWS = 7,
    STK_BLOCK_WHOLE_BYTES = STK_BLOCK_WHOLE_ROWS * STK_BLOCK_ROW_BYTES,
    STK_BLOCK_COUNT_MAX = (STK_BLOCK_UNPACKED + STK_BLOCK_WHOLE_BYTES - 1) / STK_BLOCK_WHOLE_BYTES,
    STK_BLOCK_GAP = 5
};

struct stk_block_set {
    int fd;
    uint64_t file_bytes, stored_bytes;
    stoker_block each[STK_BLOCK_COUNT_MAX + 1];
    stoker_blocks blocks;
    stoker_dataset *dataset;
};

static inline uint8_t stk_block_byte(uint64_t row, uint32_t at)
{
    return (uint8_t)(row * 31 + row / 7 + at / 8);
}

static inline int stk_block_describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_block_set *set = self;
    const bool whole = set->each[1].first_byte == STK_BLOCK_WHOLE_BYTES;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = STK_BLOCK_ROWS,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { STK_BLOCK_ROW_BYTES },
                                  .file_count = 1,
                                  .encoded_bytes_max = STK_BLOCK_ROW_BYTES,
                                  .block_count = whole ? set->blocks.count : 0 };
    return STOKER_OK;
}

static inline int stk_block_locate(const void *self, const uint64_t *ids, uint32_t count,
                                   stoker_part *parts, stoker_error *error)
{
    (void)self;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (stoker_part){ .extent = { .offset = ids[i] * STK_BLOCK_ROW_BYTES,
                                              .bytes = STK_BLOCK_ROW_BYTES } };
    return STOKER_OK;
}

static inline int stk_block_file(const void *self, uint32_t file, stoker_file *out)
{
    const struct stk_block_set *set = self;
    (void)file;
    *out = (stoker_file){
        .path = "blocks", .fd = set->fd, .size = set->file_bytes, .blocks = &set->blocks
    };
    return STOKER_OK;
}

static inline uint64_t stk_block_first(const void *self, uint64_t block)
{
    (void)self;
    return block * STK_BLOCK_WHOLE_ROWS;
}

static const stoker_dataset_ops stk_block_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                                  .name = "block set",
                                                  .describe = stk_block_describe,
                                                  .locate = stk_block_locate,
                                                  .file = stk_block_file,
                                                  .block_first = stk_block_first };

/* Pack one block. Returns its stored bytes. */
static inline uint32_t stk_block_pack(stoker_block *block, const uint8_t *from, uint32_t bytes,
                                      uint8_t *to, uint32_t room)
{
    size_t packed = bytes;
    if (block->codec == STOKER_BLOCK_CODEC_LZ4 && stk_lz4_present())
        packed = stk_lz4_pack(from, bytes, 9, to, room);
    else if (block->codec == STOKER_BLOCK_CODEC_ZSTD && stk_zstd_present())
        packed = stk_zstd_pack(from, bytes, 3, to, room);
    else {
        block->codec = STOKER_BLOCK_CODEC_NONE;
        memcpy(to, from, bytes);
    }
    return (uint32_t)packed;
}

/* Write a file of blocks of block_bytes; the data set is the caller's to create. */
static inline void stk_block_set_write(struct stk_block_set *set, uint32_t block_bytes)
{
    static uint8_t file[2 * STK_BLOCK_UNPACKED];
    static uint8_t unpacked[STK_BLOCK_UNPACKED];
    uint64_t at = 0;
    memset(set, 0, sizeof(*set));
    for (uint32_t row = 0; row < STK_BLOCK_ROWS; row++)
        for (uint32_t i = 0; i < STK_BLOCK_ROW_BYTES; i++)
            unpacked[row * STK_BLOCK_ROW_BYTES + i] = stk_block_byte(row, i);
    const uint32_t count = (STK_BLOCK_UNPACKED + block_bytes - 1) / block_bytes;
    for (uint32_t b = 0; b < count; b++) {
        const uint32_t first = b * block_bytes;
        const uint32_t left = STK_BLOCK_UNPACKED - first;
        const uint32_t bytes = left < block_bytes ? left : block_bytes;
        stoker_block *block = &set->each[b];
        at += STK_BLOCK_GAP;
        *block = (stoker_block){ .first_byte = first,
                                 .offset = at,
                                 .codec = (stoker_block_codec)(b % 3),
                                 .sum = stk_crc32c(0, unpacked + first, bytes),
                                 .has_sum = true };
        block->stored_bytes = stk_block_pack(block, unpacked + first, bytes, file + at,
                                             (uint32_t)(sizeof(file) - at));
        at += block->stored_bytes;
        set->stored_bytes += block->stored_bytes;
    }
    set->each[count].first_byte = STK_BLOCK_UNPACKED;
    set->blocks = (stoker_blocks){ .each = set->each, .count = count };
    set->file_bytes = at;
    set->fd = memfd_create("stoker-test", MFD_CLOEXEC);
    const ssize_t written = pwrite(set->fd, file, at, 0);
    assert(written == (ssize_t)at);
    (void)written;
}

static inline int stk_block_set_make(struct stk_block_set *set)
{
    stk_block_set_write(set, STK_BLOCK_BYTES);
    return stoker_dataset_create(&set->dataset, &stk_block_ops, set, NULL);
}

static inline void stk_block_set_free(struct stk_block_set *set)
{
    stoker_dataset_close(&set->dataset);
    (void)close(set->fd);
}

/* Invert a byte of a stored block. */
static inline void stk_block_set_damage(const struct stk_block_set *set, uint32_t block)
{
    const off_t at = (off_t)(set->each[block].offset + set->each[block].stored_bytes / 2);
    uint8_t byte = 0;
    if (pread(set->fd, &byte, 1, at) == 1) {
        byte ^= 0xFF;
        (void)!pwrite(set->fd, &byte, 1, at);
    }
}

/* Returns true if some byte of a row lies in the block. */
static inline int stk_block_set_touches(uint64_t row, uint32_t block)
{
    const uint64_t first = row * STK_BLOCK_ROW_BYTES;
    return first < (uint64_t)(block + 1) * STK_BLOCK_BYTES &&
           first + STK_BLOCK_ROW_BYTES > (uint64_t)block * STK_BLOCK_BYTES;
}

static inline int stk_block_set_matches(const stoker_batch *batch)
{
    const uint8_t *rows = batch->images.data;
    for (uint32_t row = 0; row < batch->count; row++)
        for (uint32_t i = 0; i < STK_BLOCK_ROW_BYTES; i++)
            if (rows[row * STK_BLOCK_ROW_BYTES + i] != stk_block_byte(batch->ids[row], i))
                return 0;
    return 1;
}

#endif
