/* sha256.h - SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for signatures of a few hundred
 * bytes: plain C, not made for speed. */
#ifndef STK_BASE_SHA256_H
#define STK_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { STK_SHA256_BYTES = 32, STK_SHA256_BLOCK_BYTES = 64 };

struct stk_sha256 {
    uint32_t state[8];
    uint64_t bytes; /* so far */
    uint8_t block[STK_SHA256_BLOCK_BYTES];
};

void stk_sha256_begin(struct stk_sha256 *sum);
void stk_sha256_add(struct stk_sha256 *sum, const void *bytes, size_t count);
void stk_sha256_end(struct stk_sha256 *sum, uint8_t out[STK_SHA256_BYTES]);

/* out may be key. */
void stk_hmac_sha256(const void *key, size_t key_bytes, const void *text, size_t text_bytes,
                     uint8_t out[STK_SHA256_BYTES]);

/* Write 64 lower-case hexadecimal digits and a 0. */
void stk_sha256_hex(const uint8_t sum[STK_SHA256_BYTES], char out[2 * STK_SHA256_BYTES + 1]);

#endif
