/* crc32c.h - CRC-32C (Castagnoli, RFC 3720): the checksum of shards, weights and event files.
 *
 * It finds every error burst of up to 32 bits, x86 and ARM have an instruction for it, and every
 * language has an implementation, so the files can be checked without this library.
 */
#ifndef STK_BASE_CRC32C_H
#define STK_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes that follow others whose checksum is `crc`; 0 for the first. */
uint32_t stk_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The variants: plain C, and the instructions of x86-64 and of 64-bit ARM. NULL = not supported by
 * this processor. */
typedef uint32_t stk_crc32c_fn(uint32_t crc, const void *bytes, size_t size);
stk_crc32c_fn *stk_crc32c_plain(void);
stk_crc32c_fn *stk_crc32c_sse42(void);
stk_crc32c_fn *stk_crc32c_arm(void);

/* The fastest variant, chosen once by a caller that computes many. */
stk_crc32c_fn *stk_crc32c_fastest(void);

/* Copy bytes, which must not overlap their target, and return their checksum: one loop on x86-64.
 * Copies of 64 KiB or more are stored past the caches. */
uint32_t stk_crc32c_copy(uint32_t crc, void *target, const void *bytes, size_t size);

#endif
