/* sha256.c - see sha256.h. */
#include "loader/base/sha256.h"

#include <string.h>

#include "loader/base/bytes.h"

static const uint32_t first_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint32_t round_key[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int bits)
{
    return x >> bits | x << (32 - bits);
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = stk_load_be32(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < 64; i++) {
        const uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                             ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_key[i] + w[i];
        const uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                             ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof(s[0]));
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void stk_sha256_begin(struct stk_sha256 *sum)
{
    memcpy(sum->state, first_state, sizeof(first_state));
    sum->bytes = 0;
}

void stk_sha256_add(struct stk_sha256 *sum, const void *bytes, size_t count)
{
    const uint8_t *from = bytes;
    while (count > 0) {
        const size_t used = sum->bytes % STK_SHA256_BLOCK_BYTES;
        const size_t room = STK_SHA256_BLOCK_BYTES - used;
        const size_t part = count < room ? count : room;
        memcpy(sum->block + used, from, part);
        sum->bytes += part;
        from += part;
        count -= part;
        if (part == room)
            add_block(sum->state, sum->block);
    }
}

void stk_sha256_end(struct stk_sha256 *sum, uint8_t out[STK_SHA256_BYTES])
{
    static const uint8_t padding[STK_SHA256_BLOCK_BYTES] = { 0x80 };
    const uint64_t bits = __builtin_bswap64(sum->bytes * 8);
    const size_t used = sum->bytes % STK_SHA256_BLOCK_BYTES;
    stk_sha256_add(sum, padding, (used < 56 ? 56 : 120) - used);
    stk_sha256_add(sum, &bits, sizeof(bits));
    for (int i = 0; i < 8; i++) {
        const uint32_t word = __builtin_bswap32(sum->state[i]);
        memcpy(out + 4 * i, &word, sizeof(word));
    }
    explicit_bzero(sum, sizeof(*sum));
}

void stk_hmac_sha256(const void *key, size_t key_bytes, const void *text, size_t text_bytes,
                     uint8_t out[STK_SHA256_BYTES])
{
    uint8_t pad[2][STK_SHA256_BLOCK_BYTES] = { { 0 } };
    struct stk_sha256 sum;
    if (key_bytes > STK_SHA256_BLOCK_BYTES) {
        stk_sha256_begin(&sum);
        stk_sha256_add(&sum, key, key_bytes);
        stk_sha256_end(&sum, pad[0]);
    } else {
        memcpy(pad[0], key, key_bytes);
    }
    for (int i = 0; i < STK_SHA256_BLOCK_BYTES; i++) {
        pad[1][i] = pad[0][i] ^ 0x5c;
        pad[0][i] ^= 0x36;
    }
    stk_sha256_begin(&sum);
    stk_sha256_add(&sum, pad[0], sizeof(pad[0]));
    stk_sha256_add(&sum, text, text_bytes);
    stk_sha256_end(&sum, out);
    stk_sha256_begin(&sum);
    stk_sha256_add(&sum, pad[1], sizeof(pad[1]));
    stk_sha256_add(&sum, out, STK_SHA256_BYTES);
    stk_sha256_end(&sum, out);
    explicit_bzero(pad, sizeof(pad));
}

void stk_sha256_hex(const uint8_t sum[STK_SHA256_BYTES], char out[2 * STK_SHA256_BYTES + 1])
{
    for (int i = 0; i < STK_SHA256_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[sum[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[sum[i] & 15];
    }
    out[2 * STK_SHA256_BYTES] = '\0';
}
