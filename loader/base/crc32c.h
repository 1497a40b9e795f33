/* crc32c.h - CRC-32C (Castagnoli, RFC 3720): the checksum of shards, weights and event files.
 *
 * It finds every error burst of up to 32 bits, x86 and ARM have an instruction for it, and every
 * language has an implementation, so the files can be checked without this library.
 */
#ifndef STK_BASE_CRC32C_H
#define STK_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The checksum of bytes that follow others whose checksum is `crc`; 0 for the first. */
uint32_t stk_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The variants: plain C; the instruction of x86-64, and that instruction together with carry-less multiplication of
 * 256 and 512 bits; the instruction of 64-bit ARM, and three sums at a time. NULL = not supported by this processor. */
typedef uint32_t stk_crc32c_fn(uint32_t crc, const void *bytes, size_t size);
stk_crc32c_fn *stk_crc32c_plain(void);
stk_crc32c_fn *stk_crc32c_sse42(void);
stk_crc32c_fn *stk_crc32c_avx2(void);
stk_crc32c_fn *stk_crc32c_avx512(void);
stk_crc32c_fn *stk_crc32c_arm(void);
stk_crc32c_fn *stk_crc32c_arm_strips(void);

/* The fastest variant, chosen once by a caller that computes many. */
stk_crc32c_fn *stk_crc32c_fastest(void);

/* Copy bytes, which must not overlap their target, and return their checksum. For large copies to memory that is not read
 * soon: the AVX-512 variant stores past the caches. NULL = not supported by this processor. */
typedef uint32_t stk_crc32c_copy_fn(uint32_t crc, void *target, const void *bytes, size_t size);
stk_crc32c_copy_fn *stk_crc32c_copy_avx512(void);

/* The same with any variant of the sum, piece by piece, so that a piece is in the cache when it is summed. */
static inline uint32_t stk_crc32c_copy_plain(stk_crc32c_fn *sum, uint32_t crc, void *target,
                                             const void *bytes, size_t size)
{
    const size_t piece_bytes = 4096;
    const uint8_t *from = bytes;
    uint8_t *to = target;
    for (size_t done = 0; done < size; done += piece_bytes) {
        const size_t piece = size - done < piece_bytes ? size - done : piece_bytes;
        memcpy(to + done, from + done, piece);
        crc = sum(crc, from + done, piece); /* not the copy, whose lines are still on their way */
    }
    return crc;
}

/* The fastest of the two. */
uint32_t stk_crc32c_copy(uint32_t crc, void *target, const void *bytes, size_t size);

#endif
