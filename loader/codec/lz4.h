/* lz4.h - the codec of rows stored as one LZ4 block each (not the frame format).
 *
 * A block does not know its own size: the row tells it. LZ4 has no checksum; whoever
 * stores blocks stores one beside them.
 */
#ifndef STK_CODEC_LZ4_H
#define STK_CODEC_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

enum { STK_LZ4_RATIO_MAX = 255 }; /* no block unpacks to more than so many times its bytes */

/* decode() answers STOKER_ECORRUPT if the block does not or cannot unpack to exactly the row's
 * bytes, STOKER_ELIMIT from 2^31 bytes on, and STOKER_ENOTSUP in a build without LZ4. */
extern const stoker_codec stk_codec_lz4;

/* Whether this build has LZ4. */
bool stk_lz4_present(void);

/* Room that the block of a row of row_bytes may take at worst; 0 if the row is too long for LZ4
 * (over 2 113 929 216 bytes) or this build has none. */
size_t stk_lz4_bound(size_t row_bytes);

/* Pack a row. level 0 = fast, 1..12 = slower and smaller (HC). Returns the block's bytes, or 0
 * if it does not fit in block_bytes_max. May allocate at level >= 1. */
size_t stk_lz4_pack(const void *row, size_t row_bytes, int level, void *block,
                    size_t block_bytes_max);

#endif
