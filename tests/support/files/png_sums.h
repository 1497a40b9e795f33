/* png_sums.h - the checksums of PNG chunks, computed and put right. */
#ifndef STK_TEST_PNG_SUMS_H
#define STK_TEST_PNG_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/bytes.h"

/* CRC-32 as PNG has it, slowly, a bit at a time. */
static inline uint32_t stk_png_sum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = (sum >> 1) ^ (0xEDB88320U & (0U - (sum & 1)));
    }
    return ~sum;
}

/* Big-endian, at any alignment. */
static inline void stk_png_put_be32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Put the sums of all chunks right, as far as there are whole ones. */
static inline void stk_png_mend(uint8_t *bytes, size_t size)
{
    size_t at = 8;
    while (at <= size && size - at >= 12) {
        const size_t length = stk_load_be32(bytes + at);
        if (length > size - at - 12)
            return;
        stk_png_put_be32(bytes + at + 8 + length, stk_png_sum(bytes + at + 4, length + 4));
        at += 12 + length;
    }
}

#endif
