/* places.h - a table of places in a baseline JPEG: where the codes of every step-th MCU of a row
 * begin in the file, and the DC values that they add to.
 *
 *   MCUs   | p . . . p . . . p . |      p: a place of the table, step 4
 *          | p . . a a a a a p . |      in each row of a region a, reading begins at the place
 *          | p . . a a a a a p . |      before it, skips the codes up to the region, and ends
 *          | p . . . p . . . p . |      with it
 *
 * The table is made when a file is first decoded to its end, without an error. It is used only for
 * bytes of the same length and checksum, so damage beside a region cannot go unnoticed.
 */
#ifndef STK_CODEC_JPEG_PLACES_H
#define STK_CODEC_JPEG_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stk_jpeg_place {
    uint32_t at;   /* bits from the start of the file */
    int16_t dc[4]; /* of each component: its last DC value */
};

struct stk_jpeg_places {
    uint32_t sum;           /* CRC-32C of the file; 0 until the table is complete */
    uint32_t file_bytes;    /* 0 until then */
    uint16_t columns, rows; /* MCUs of the image */
    uint16_t step, across;  /* MCUs from one place to the next; places of a row */
    struct stk_jpeg_place place[];
};

/* Choose the step for an image of that many MCUs in a file of that length: the finest whose table
 * fits in room_bytes. Returns false if none does, or positions do not fit in 32 bits. */
bool stk_jpeg_places_begin(struct stk_jpeg_places *places, size_t room_bytes, size_t file_bytes,
                           uint32_t columns, uint32_t rows);

/* Complete the table, once all places are noted. Returns its bytes. */
size_t stk_jpeg_places_end(struct stk_jpeg_places *places, const uint8_t *file, size_t file_bytes);

/* Returns true if the table is complete, and was made from these bytes. Does not check the places
 * themselves. */
bool stk_jpeg_places_fit(const struct stk_jpeg_places *places, size_t table_bytes,
                         const uint8_t *file, size_t file_bytes);

#endif
