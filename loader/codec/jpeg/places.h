/* places.h - a table of places in the codes of a baseline JPEG: where the codes of every step-th
 * MCU of a row begin, and what they add to.
 *
 *   MCUs   | p . . . p . . . p . |      p: a place of the table, step 4
 *          | p . . a a a b b p . |      a region of columns a and b is read from the place before a,
 *          | p . . a a a b b p . |      row by row: the codes between are skipped, all others are
 *          | p . . . p . . . p . |      not even looked at
 *
 * It is made while a file is decoded to its end for the first time, and serves only bytes of the
 * same length and checksum: they have been decoded without an error, so damage beside a region
 * cannot go unnoticed.
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

/* All places have been noted. Returns the bytes of the table. */
size_t stk_jpeg_places_end(struct stk_jpeg_places *places, const uint8_t *file, size_t file_bytes);

/* Returns true if a table is complete, and was made of these bytes. Its places may still be any
 * numbers. */
bool stk_jpeg_places_fit(const struct stk_jpeg_places *places, size_t table_bytes,
                         const uint8_t *file, size_t file_bytes);

#endif
