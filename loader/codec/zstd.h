/* zstd.h - the codec of rows stored as one Zstandard frame each (RFC 8878).
 *
 * The frame must store its unpacked size, and nothing may follow it. It needs no checksum of its
 * own: store one beside it.
 */
#ifndef STK_CODEC_ZSTD_H
#define STK_CODEC_ZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

enum {
    STK_ZSTD_RATIO_MAX = 32768, /* a block of 128 KiB takes 4 bytes or more */
    STK_ZSTD_LEVEL_MAX = 19     /* higher levels need windows that cost the reader memory */
};

/* decode() returns STOKER_ECORRUPT if the frame does not unpack to exactly the bytes of a row, and
 * STOKER_ENOTSUP in a build without libzstd. */
extern const stoker_codec stk_codec_zstd;

/* Returns true if this build has libzstd. */
bool stk_zstd_present(void);

/* The largest frame of row_bytes; 0 if this build has no libzstd. */
size_t stk_zstd_bound(size_t row_bytes);

/* Pack a row at level 1..STK_ZSTD_LEVEL_MAX. Returns the size of the frame, or 0 if it does not fit
 * in frame_bytes_max. Allocates. */
size_t stk_zstd_pack(const void *row, size_t row_bytes, int level, void *frame,
                     size_t frame_bytes_max);

#endif
