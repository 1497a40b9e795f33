/* crc32c_by_bits.h - CRC-32C by its definition, one bit at a time: what tests compare with. */
#ifndef STK_TESTS_CRC32C_BY_BITS_H
#define STK_TESTS_CRC32C_BY_BITS_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t stk_crc32c_by_bits(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
    }
    return ~crc;
}

#endif
