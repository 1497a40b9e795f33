/* blocks.h - the tables of blocks: check one, find a block, unpack it.
 *
 *   unpacked file   │ block 0 │ block 1    │ block 2 │      extents count these bytes
 *   stored file     │ ── │ 0 │ ── │ 1  │ 2 │ ─── │         each block anywhere, in any codec
 */
#ifndef STK_STORAGE_BLOCKS_H
#define STK_STORAGE_BLOCKS_H

#include <assert.h>
#include <stdint.h>
#include <stoker/dataset.h>

enum { STK_BLOCK_BYTES_MAX = 1 << 30 };

/* Check the table of a file, if it has one. Returns 0, STOKER_EINVAL, or STOKER_ENOTSUP (this build
 * lacks a codec). */
int stk_blocks_check(const stoker_file *file, stoker_error *error);

static inline uint64_t stk_blocks_unpacked_bytes(const stoker_blocks *blocks)
{
    return blocks->each[blocks->count].first_byte;
}

static inline uint64_t stk_block_bytes(const stoker_blocks *blocks, uint64_t number)
{
    return blocks->each[number + 1].first_byte - blocks->each[number].first_byte;
}

/* Returns the block that holds a byte of the unpacked file. */
static inline uint64_t stk_blocks_find(const stoker_blocks *blocks, uint64_t byte)
{
    uint64_t low = 0;
    uint64_t high = blocks->count;
    assert(byte < stk_blocks_unpacked_bytes(blocks));
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (blocks->each[middle].first_byte <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const char *stk_block_codec_name(stoker_block_codec codec);

/* A thread's scratch for unpacking. Returns 0 or STOKER_ENOMEM. */
int stk_block_scratch_open(void **scratch);
void stk_block_scratch_close(void *scratch); /* NULL is allowed */

/* Unpack a block and verify its checksum. Without a codec `to` is `stored`. Returns 0, or
 * STOKER_ECORRUPT with the reason in said->message. */
int stk_block_unpack(const stoker_blocks *blocks, uint64_t number, void *scratch,
                     const void *stored, void *to, stoker_error *said);

#endif
