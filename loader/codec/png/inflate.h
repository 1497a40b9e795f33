/* inflate.h - unpacks one zlib stream (RFC 1950, 1951) in one go, to a known size.
 *
 * Made for the pixels of one image: tables cover only the codes that a block uses, so that an image
 * of a few hundred bytes is decoded while a general decoder still fills its tables. Over
 * libdeflate_zlib_decompress_ex() it gains 13.1 % on MNIST as PNG files (402,544 instead of 356,016
 * samples/s) and 7.8 % on 256x256 colour images (3,317 instead of 3,076): 2-CPU Xeon, `loaderbench
 * --cache none --workers 2 --batch-size 64`, median of 7 alternating runs. Adler-32 is libdeflate's.
 *
 * Allocates nothing. One loop serves all bytes, without a careful version for the ends of the
 * buffers, because both have slack:
 *
 *   in    [ zlib stream, in_bytes ][ readable, STK_INFLATE_IN_SLACK_BYTES  ]
 *   out   [ result, out_bytes     ][ writable, STK_INFLATE_OUT_SLACK_BYTES ]
 *
 * The slack after the stream never changes the result.
 */
#ifndef STK_CODEC_INFLATE_H
#define STK_CODEC_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STK_INFLATE_IN_SLACK_BYTES = 12,
    STK_INFLATE_OUT_SLACK_BYTES = 288,
    STK_INFLATE_LITLEN_ENTRIES = 3200, /* enough: see inflate_table.h */
    STK_INFLATE_DISTANCE_ENTRIES = 256 + 512,
    STK_INFLATE_PRECODE_ENTRIES = 128
};

/* The tables of one worker, 16 KiB. Zeroed at first; any number of streams may use it in turn. */
struct stk_inflate {
    bool plain; /* use no processor-specific instructions: for tests */
    bool fixed; /* an earlier block left the tables of the fixed codes */
    bool pairs; /* entries may hold two literals */
    unsigned litlen_bits;
    unsigned distance_bits;
    uint32_t litlen[STK_INFLATE_LITLEN_ENTRIES];
    uint32_t distance[STK_INFLATE_DISTANCE_ENTRIES];
    uint32_t precode[STK_INFLATE_PRECODE_ENTRIES];
};

/* Returns true if `in` is exactly one zlib stream that unpacks to exactly out_bytes and has the right
 * Adler-32. Otherwise returns false, with `out` partly written, slack included.
 *
 * Accepts what zlib accepts with a window of 32 KiB, whatever the header declares: a code must be
 * complete, but a distance code may be empty, and either code may have a single codeword of one
 * bit; a block needs an end; reserved symbols are refused. */
bool stk_inflate(struct stk_inflate *tables, const uint8_t *in, size_t in_bytes, uint8_t *out,
                 size_t out_bytes);

#endif
