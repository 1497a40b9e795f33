/* lz4_reference.h - an LZ4 block unpacked a byte at a time, as its format is described: the oracle.
 *
 * It asks less of the end of a block than liblz4 does: what liblz4 accepts it accepts as well, but for
 * an offset of 0, which has no meaning and which liblz4 lets pass.
 */
#ifndef STK_TEST_LZ4_REFERENCE_H
#define STK_TEST_LZ4_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stk_lz4_verdict { STK_LZ4_WHOLE, STK_LZ4_DAMAGED, STK_LZ4_OFFSET_0 };

struct stk_lz4_reading {
    const uint8_t *at;
    const uint8_t *end;
};

/* A length of 15 has more behind it. False: the block ends in it. */
static inline bool stk_lz4_length(struct stk_lz4_reading *block, size_t *length)
{
    uint8_t more = *length == 15 ? UINT8_MAX : 0;
    while (more == UINT8_MAX) {
        if (block->at == block->end)
            return false;
        more = *block->at++;
        *length += more;
    }
    return true;
}

/* Unpack to a row of exactly that length. */
static inline enum stk_lz4_verdict stk_lz4_reference(const uint8_t *bytes, size_t size,
                                                     uint8_t *row, size_t row_bytes)
{
    struct stk_lz4_reading block = { bytes, bytes + size };
    size_t out = 0;
    while (block.at < block.end) {
        const uint8_t token = *block.at++;
        size_t literals = token >> 4;
        if (!stk_lz4_length(&block, &literals) || literals > (size_t)(block.end - block.at) ||
            literals > row_bytes - out)
            return STK_LZ4_DAMAGED;
        for (; literals > 0; literals--)
            row[out++] = *block.at++;
        if (block.at == block.end)
            return out == row_bytes ? STK_LZ4_WHOLE : STK_LZ4_DAMAGED;
        if (block.end - block.at < 2)
            return STK_LZ4_DAMAGED;
        const size_t offset = (size_t)block.at[0] | (size_t)block.at[1] << 8;
        block.at += 2;
        size_t match = token & 15;
        if (!stk_lz4_length(&block, &match) || match + 4 > row_bytes - out || offset > out)
            return STK_LZ4_DAMAGED;
        if (offset == 0)
            return STK_LZ4_OFFSET_0;
        for (match += 4; match > 0; match--, out++)
            row[out] = row[out - offset];
    }
    return STK_LZ4_DAMAGED;
}

#endif
