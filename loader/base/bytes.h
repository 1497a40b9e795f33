/* bytes.h - integers in files: any alignment, either byte order. */
#ifndef STK_BASE_BYTES_H
#define STK_BASE_BYTES_H

#include <stdint.h>

_Static_assert(
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "Stoker runs on little-endian machines: rows in shards, NPY files and checkpoints are "
    "little-endian, and used as they lie");

static inline uint16_t stk_load_be16(const uint8_t *at)
{
    return (uint16_t)((at[0] << 8) | at[1]);
}

static inline uint32_t stk_load_be32(const uint8_t *at)
{
    return ((uint32_t)stk_load_be16(at) << 16) | stk_load_be16(at + 2);
}

static inline uint32_t stk_load_le32(const uint8_t *at)
{
    return (uint32_t)at[0] | ((uint32_t)at[1] << 8) | ((uint32_t)at[2] << 16) |
           ((uint32_t)at[3] << 24);
}

static inline uint64_t stk_load_le64(const uint8_t *at)
{
    return (uint64_t)stk_load_le32(at) | ((uint64_t)stk_load_le32(at + 4) << 32);
}

static inline uint64_t stk_load_be64(const uint8_t *at)
{
    return __builtin_bswap64(stk_load_le64(at));
}

static inline void stk_store_le32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static inline void stk_store_le64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

#endif
