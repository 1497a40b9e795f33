/* deflate_writer.h - zlib streams put together bit by bit, right or wrong, with what they unpack
 * to.
 *
 *   begin -> { stored | fixed | dynamic -> { literal | match | codeword } -> end } -> finish
 */
#ifndef STK_TEST_DEFLATE_WRITER_H
#define STK_TEST_DEFLATE_WRITER_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { STK_DEFLATE_BYTES_MAX = 1 << 20, STK_DEFLATE_END = 256 };

struct stk_deflate {
    uint8_t bytes[STK_DEFLATE_BYTES_MAX];
    size_t bits;
    uint8_t out[STK_DEFLATE_BYTES_MAX]; /* what it must unpack to */
    size_t out_bytes;
    uint8_t litlen[288]; /* the block's codes: bits of each symbol's codeword */
    uint8_t distance[32];
};

static inline void stk_deflate_put(struct stk_deflate *stream, uint32_t value, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++, stream->bits++) {
        cr_assert_lt(stream->bits / 8, sizeof(stream->bytes));
        if (stream->bits % 8 == 0)
            stream->bytes[stream->bits / 8] = 0;
        stream->bytes[stream->bits / 8] |= (uint8_t)((value >> i & 1) << stream->bits % 8);
    }
}

static inline size_t stk_deflate_size(const struct stk_deflate *stream)
{
    return (stream->bits + 7) / 8;
}

static inline void stk_deflate_begin(struct stk_deflate *stream)
{
    stream->bits = 0;
    stream->out_bytes = 0;
    stk_deflate_put(stream, 0x78, 8);
    stk_deflate_put(stream, 0x9C, 8);
}

/* The codeword of a symbol by RFC 1951, 3.2.2, first bit first. */
static inline void stk_deflate_codeword(struct stk_deflate *stream, const uint8_t *lengths,
                                        unsigned symbols, unsigned symbol)
{
    uint32_t count[16] = { 0 };
    uint32_t word = 0;
    for (unsigned i = 0; i < symbols; i++)
        count[lengths[i]]++;
    count[0] = 0;
    for (unsigned bits = 1; bits <= lengths[symbol]; bits++)
        word = (word + count[bits - 1]) << 1;
    for (unsigned i = 0; i < symbol; i++)
        word += lengths[i] == lengths[symbol];
    cr_assert_neq(lengths[symbol], 0, "symbol %u has no codeword", symbol);
    for (unsigned bit = lengths[symbol]; bit-- > 0;)
        stk_deflate_put(stream, word >> bit & 1, 1);
}

static inline void stk_deflate_symbol(struct stk_deflate *stream, unsigned symbol)
{
    stk_deflate_codeword(stream, stream->litlen, 288, symbol);
}

static inline void stk_deflate_literal(struct stk_deflate *stream, uint8_t byte)
{
    stk_deflate_symbol(stream, byte);
    cr_assert_lt(stream->out_bytes, sizeof(stream->out));
    stream->out[stream->out_bytes++] = byte;
}

/* A distance without its length; one that reaches too far back is written all the same. */
static inline void stk_deflate_distance(struct stk_deflate *stream, uint32_t distance)
{
    unsigned symbol = 0;
    uint32_t base = 1;
    unsigned extra = 0;
    while (base + (1U << extra) <= distance) {
        base += 1U << extra;
        symbol++;
        extra = symbol < 2 ? 0 : symbol / 2 - 1;
    }
    stk_deflate_codeword(stream, stream->distance, 32, symbol);
    stk_deflate_put(stream, distance - base, extra);
}

static inline void stk_deflate_length(struct stk_deflate *stream, uint32_t length)
{
    unsigned symbol = 257;
    uint32_t base = 3;
    unsigned extra = 0;
    while (length < 258 && base + (1U << extra) <= length) {
        base += 1U << extra;
        symbol++;
        extra = symbol < 265 ? 0 : (symbol - 261) / 4;
    }
    stk_deflate_symbol(stream, length == 258 ? 285 : symbol);
    stk_deflate_put(stream, length == 258 ? 0 : length - base, length == 258 ? 0 : extra);
}

static inline void stk_deflate_match(struct stk_deflate *stream, uint32_t length, uint32_t distance)
{
    stk_deflate_length(stream, length);
    stk_deflate_distance(stream, distance);
    cr_assert_leq(stream->out_bytes + length, sizeof(stream->out));
    for (uint32_t i = 0; i < length; i++, stream->out_bytes++)
        stream->out[stream->out_bytes] =
            distance <= stream->out_bytes ? stream->out[stream->out_bytes - distance] : 0;
}

static inline void stk_deflate_stored(struct stk_deflate *stream, bool final, const uint8_t *bytes,
                                      uint16_t size)
{
    stk_deflate_put(stream, final, 1);
    stk_deflate_put(stream, 0, 2);
    stk_deflate_put(stream, 0, (unsigned)(-stream->bits % 8));
    stk_deflate_put(stream, size, 16);
    stk_deflate_put(stream, (uint16_t)~size, 16);
    for (unsigned i = 0; i < size; i++) {
        stk_deflate_put(stream, bytes[i], 8);
        stream->out[stream->out_bytes++] = bytes[i];
    }
}

static inline void stk_deflate_fixed(struct stk_deflate *stream, bool final)
{
    stk_deflate_put(stream, final, 1);
    stk_deflate_put(stream, 1, 2);
    for (unsigned i = 0; i < 288; i++)
        stream->litlen[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(stream->distance, 5, sizeof(stream->distance));
}

/* The head of a dynamic block, up to the codewords of the lengths, of which each has 4 bits. */
static inline void stk_deflate_dynamic_head(struct stk_deflate *stream, bool final, unsigned hlit,
                                            unsigned hdist)
{
    stk_deflate_put(stream, final, 1);
    stk_deflate_put(stream, 2, 2);
    stk_deflate_put(stream, hlit - 257, 5);
    stk_deflate_put(stream, hdist - 1, 5);
    stk_deflate_put(stream, 19 - 4, 4);
    for (unsigned i = 0; i < 19; i++)
        stk_deflate_put(stream, i < 3 ? 0 : 4, 3); /* 16, 17 and 18 come first */
}

static inline void stk_deflate_put_length(struct stk_deflate *stream, unsigned length)
{
    static const uint8_t precode[16] = { 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4 };
    stk_deflate_codeword(stream, precode, 16, length);
}

/* A dynamic block with the lengths that stand in the stream, whether they make a code or not. */
static inline void stk_deflate_dynamic(struct stk_deflate *stream, bool final, unsigned hlit,
                                       unsigned hdist)
{
    stk_deflate_dynamic_head(stream, final, hlit, hdist);
    for (unsigned i = 0; i < hlit; i++)
        stk_deflate_put_length(stream, stream->litlen[i]);
    for (unsigned i = 0; i < hdist; i++)
        stk_deflate_put_length(stream, stream->distance[i]);
}

static inline void stk_deflate_end(struct stk_deflate *stream)
{
    stk_deflate_symbol(stream, STK_DEFLATE_END);
}

/* The sum, a byte at a time. */
static inline uint32_t stk_deflate_sum(const uint8_t *bytes, size_t size)
{
    uint32_t low = 1;
    uint32_t high = 0;
    for (size_t i = 0; i < size; i++) {
        low = (low + bytes[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

static inline void stk_deflate_finish(struct stk_deflate *stream)
{
    const uint32_t sum = stk_deflate_sum(stream->out, stream->out_bytes);
    stk_deflate_put(stream, 0, (unsigned)(-stream->bits % 8));
    for (unsigned i = 0; i < 4; i++)
        stk_deflate_put(stream, sum >> (24 - 8 * i) & 0xFF, 8);
}

#endif
