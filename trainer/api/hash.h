/* hash.h - FNV-1a, by which ranks compare what they were given. */
#ifndef STK_TRAINER_API_HASH_H
#define STK_TRAINER_API_HASH_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t STK_HASH_START = UINT64_C(0xCBF29CE484222325);

static inline uint64_t stk_hash_add(uint64_t hash, const void *bytes, size_t count)
{
    const uint64_t prime = UINT64_C(0x100000001B3);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * prime;
    return hash;
}

#endif
