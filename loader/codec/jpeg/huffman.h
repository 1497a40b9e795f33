/* huffman.h - reads the coefficients of a baseline JPEG in place of libjpeg's decoder.
 *
 * Reading codes takes two thirds of the time of a photograph. This decoder finds a code, its run
 * and its value in one lookup, reads from bytes without stuffing, and only skips the codes of
 * blocks that are not needed. Everything else stays libjpeg's. It takes the place of a method of
 * libjpeg's entropy decoder, an inner table that no header declares: in libjpeg-turbo 1.5 to 3.1
 * the method is its second member. So each worker first tries it on a small image (jpeg.c), and
 * until is_trusted it checks the table and all arguments before it uses them. A library that fails
 * keeps its own decoder.
 *
 * It can note places in the codes (places.h), and go to those that it is given.
 *
 * It declines at anything unusual (a bad code, a missing or wrong marker, stray bytes): the caller
 * then begins again with libjpeg alone, whose verdict counts.
 */
#ifndef STK_CODEC_JPEG_HUFFMAN_H
#define STK_CODEC_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h needs it */

#include <jpeglib.h>

#include "loader/codec/jpeg/places.h"

enum {
    STK_JPEG_LOOK_BITS = 10,
    STK_JPEG_WINDOW_BYTES = 16 << 10,
    STK_JPEG_BLOCKS_MAX = 10,                              /* blocks of an MCU */
    STK_JPEG_MCU_BYTES_MAX = STK_JPEG_BLOCKS_MAX * 64 * 4, /* 64 codes and values of 31 bits */
    STK_JPEG_WINDOW_SLACK_BYTES =
        STK_JPEG_MCU_BYTES_MAX + 16 /* read before a missing end is noticed */
};

/* Bits in a word, the next one on top; below `count` of them it holds some of the following ones,
 * too. */
struct stk_jpeg_bits {
    uint64_t word;
    uint32_t count;
    const uint8_t *next; /* in the window */
};

/* One code of the file. */
struct stk_jpeg_code {
    uint32_t entries[1 << STK_JPEG_LOOK_BITS];
    uint8_t bits[17]; /* what it was made from: number of codes by length, and their symbols */
    uint8_t symbols[256];
    bool is_made;
    int32_t code_end[18]; /* the first code of more than `length` bits, shifted to 16 bits */
    int32_t symbol_at[17];
};

/* One worker's decoder. Zeroed at first. */
struct stk_jpeg_huffman {
    struct jpeg_source_mgr source;                /* first: decode_mcu() finds the decoder by it */
    void (*decline)(j_decompress_ptr decompress); /* does not return */
    bool is_trusted; /* this libjpeg is as expected: set by the caller */
    /* Set by the caller before each image, NULL = none: places of its codes; where to note them,
     * NULL after begin() if there is no room. */
    const struct stk_jpeg_places *known;
    struct stk_jpeg_places *noting;
    size_t noting_bytes, file_bytes;
    struct stk_jpeg_code dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];

    /* This image. */
    uint32_t blocks;
    struct {
        const struct stk_jpeg_code *dc, *ac;
        uint8_t component;
        bool dc_only;
    } block[STK_JPEG_BLOCKS_MAX];
    uint32_t columns, rows;             /* MCUs of the image */
    uint32_t column, row;               /* the MCU asked for next */
    uint32_t first_column, last_column; /* those that are needed */
    uint32_t restart_interval, restarts_to_go;
    uint8_t restart_number;
    int32_t last_dc[4];

    struct stk_jpeg_bits bits;
    size_t window_bytes;
    const uint8_t *file; /* set by the caller if it gives places */
    const uint8_t *raw;  /* the file's next byte, not yet in the window */
    const uint8_t *raw_end;
    const uint8_t *raw_limit;         /* no byte from here on is needed */
    bool at_marker;                   /* the segment, or what is needed, ends with the window */
    const uint8_t *noted_raw, *noted; /* one byte, in the file and in the window */
    uint8_t window[STK_JPEG_WINDOW_BYTES + STK_JPEG_WINDOW_SLACK_BYTES];
};

/* Take over an image that jpeg_start_decompress() has begun, if it is of a kind that this decoder
 * reads. Returns true if so. */
bool stk_jpeg_huffman_begin(struct stk_jpeg_huffman *huffman, j_decompress_ptr decompress);

/* Only these columns of MCUs are needed, both included. */
void stk_jpeg_huffman_need(struct stk_jpeg_huffman *huffman, uint32_t first, uint32_t last);

#endif
