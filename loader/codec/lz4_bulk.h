/* lz4_bulk.h - most of a long LZ4 block, while there is room on all sides.
 *
 *   block  [ sequences: unpacked here, without a look at each end ....... | the rest: liblz4 ]
 *   row    [ ........................................................... | ................ ]
 *                                                              STK_LZ4_ROOM_BYTES at least
 *
 * It stops in front of a sequence: near an end, or at one that it does not understand. Whether that one
 * is wrong is for the library to say, which goes on from there.
 */
#ifndef STK_CODEC_LZ4_BULK_H
#define STK_CODEC_LZ4_BULK_H

#include <stddef.h>
#include <stdint.h>

enum {
    STK_LZ4_ROOM_BYTES = 64,   /* are left of the row, */
    STK_LZ4_ROOM_IN_BYTES = 32 /* and of the block */
};

struct stk_lz4_bulk {
    const uint8_t *in; /* the next sequence */
    const uint8_t *in_end;
    uint8_t *row; /* matches do not begin before it */
    uint8_t *out; /* where the next sequence goes; bytes behind may be written, too */
    uint8_t *out_end;
};

/* Go on as far as it goes; any bytes are allowed. */
void stk_lz4_bulk(struct stk_lz4_bulk *bulk);

#endif
