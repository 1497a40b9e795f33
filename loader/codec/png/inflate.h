/* inflate.h - one zlib stream (RFC 1950, 1951) unpacked in one go, to a size that is known.
 *
 * Made for the pixels of one picture. What is large elsewhere is small here: a table is built for
 * the codes that a block uses, and a picture of a few hundred bytes is done while a general
 * decoder still fills its tables. Nothing is allocated, and there is one loop, without a careful
 * twin for the ends of the buffers, because both have room behind them:
 *
 *   in    [ zlib stream, in_bytes ][ readable, STK_INFLATE_IN_SLACK_BYTES  ]
 *   out   [ result, out_bytes     ][ writable, STK_INFLATE_OUT_SLACK_BYTES ]
 *
 * What lies behind the stream never changes the answer.
 */
#ifndef STK_CODEC_INFLATE_H
#define STK_CODEC_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STK_INFLATE_IN_SLACK_BYTES = 12,
    STK_INFLATE_OUT_SLACK_BYTES = 288,
    STK_INFLATE_LITLEN_ENTRIES = 3200, /* inflate_table.h tells why that is enough */
    STK_INFLATE_DISTANCE_ENTRIES = 256 + 512,
    STK_INFLATE_PRECODE_ENTRIES = 128
};

/* The tables of one worker, 16 KiB. Starts as zeros; one stream after the other may use it. */
struct stk_inflate {
    bool plain; /* never use what only some processors have: for tests */
    bool fixed; /* the tables are those of the fixed codes, from a block before */
    bool pairs; /* entries may stand for two literals */
    unsigned litlen_bits;
    unsigned distance_bits;
    uint32_t litlen[STK_INFLATE_LITLEN_ENTRIES];
    uint32_t distance[STK_INFLATE_DISTANCE_ENTRIES];
    uint32_t precode[STK_INFLATE_PRECODE_ENTRIES];
};

/* Unpack. True if `in` is one whole zlib stream, no byte more, that unpacks to just out_bytes and
 * whose Adler-32 is right. False if not, and `out` is half written, slack included.
 *
 * The verdict is zlib's, with a window of 32 KiB whatever the header declares: a code must be
 * complete, but a code of distances may be empty, and one of either sort may have a single
 * codeword of one bit; a block needs an end; symbols that the standard reserves are refused. */
bool stk_inflate(struct stk_inflate *tables, const uint8_t *in, size_t in_bytes, uint8_t *out,
                 size_t out_bytes);

#endif
