/* inflate_table.h - the lookup table of one Huffman code.
 *
 *   next bits of the stream, first bit lowest
 *        |  the lowest root_bits are the index
 *        v
 *   first level   [ 2^root_bits entries ][ subtable ][ subtable ] ...
 *                        |                    ^  the bits behind those
 *                        `--------------------'  codewords longer than root_bits
 *
 *   an entry      31          16 15    14 13  12 11   8 7 6 5    0
 *                 [    value    |literals| S | T | code |   | used ]
 *
 *   literals  1 or 2: number of literals in value, the first one lowest
 *   S, T      S: the end of the block, or no codeword;
 *             with T: value is offset of a subtable, with `code` index bits
 *   else      a length or a distance: value is its base, and `used` counts the extra bits in
 *   used      the bits this entry takes from the stream
 *   code      those of them that are the codeword
 */
#ifndef STK_CODEC_INFLATE_TABLE_H
#define STK_CODEC_INFLATE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STK_ENTRY_USED = 63,
    STK_ENTRY_CODE_AT = 8,
    STK_ENTRY_SUBTABLE = 1 << 12,
    STK_ENTRY_SPECIAL_AT = 13,
    STK_ENTRY_SPECIAL = 1 << STK_ENTRY_SPECIAL_AT,
    STK_ENTRY_LITERALS_AT = 14,
    STK_ENTRY_VALUE_AT = 16,
    STK_ENTRY_INVALID = STK_ENTRY_SPECIAL | 1, /* uses a bit, so that decoding advances */
    STK_ENTRY_END = STK_ENTRY_SPECIAL | 1 << STK_ENTRY_VALUE_AT,
    STK_CODEWORD_BITS_MAX = 15
};

#define STK_ENTRY_LITERAL       (1U << STK_ENTRY_LITERALS_AT)
#define STK_ENTRY_LITERALS_MASK (3U << STK_ENTRY_LITERALS_AT)

/* What to build. */
struct stk_inflate_code {
    const uint8_t *lengths;  /* bits of each symbol's codeword, 0 = none */
    unsigned symbols;        /* number of symbols, <= 288 */
    const uint32_t *meaning; /* each symbol's entry, without its codeword's length */
    unsigned root_bits_max;
    unsigned entries;   /* size of the table */
    bool may_be_single; /* allow no codeword, or only one of one bit */
};

/* Build the table. Returns root_bits, 1..root_bits_max; 0 = invalid code.
 *
 * It needs 2^root_bits_max entries, and with s = 15 - root_bits_max at most symbols x 2^s / (s + 1)
 * for subtables: one of 2^s entries is complete, so it has at least s + 1 symbols. For 288 symbols
 * that is 512 + 2633 with 9 root bits, 2048 + 921 with 11; for 30, 256 + 480 with 8. */
unsigned stk_inflate_build(uint32_t *table, const struct stk_inflate_code *code);

/* Put two literals into an entry if the index has room for both codewords. */
void stk_inflate_pair_literals(uint32_t *table, unsigned root_bits);

#endif
