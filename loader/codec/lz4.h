/* lz4.h - the codec of rows stored as one LZ4 block each (not the frame format).
 *
 * A block does not store its unpacked size, which is that of the row. It has no checksum: store one
 * beside it.
 */
#ifndef STK_CODEC_LZ4_H
#define STK_CODEC_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

enum { STK_LZ4_RATIO_MAX = 255 }; /* no block unpacks to more than this times its bytes */

/* decode() returns STOKER_ECORRUPT if the block does not unpack to exactly the bytes of a row,
 * STOKER_ELIMIT from 2^31 bytes on, and STOKER_ENOTSUP in a build without LZ4. */
extern const stoker_codec stk_codec_lz4;

/* Returns true if this build has LZ4. */
bool stk_lz4_present(void);

/* The largest block of a row of row_bytes; 0 if the row is too long for LZ4 (over 2,113,929,216
 * bytes) or this build has no LZ4. */
size_t stk_lz4_bound(size_t row_bytes);

/* Pack a row. level 0 = fast, 1..12 = slower and smaller (HC). Returns the size of the block, or 0
 * if it does not fit in block_bytes_max. May allocate at level >= 1. */
size_t stk_lz4_pack(const void *row, size_t row_bytes, int level, void *block,
                    size_t block_bytes_max);

#endif
