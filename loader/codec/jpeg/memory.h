/* memory.h - libjpeg's memory manager on an arena.
 *
 * libjpeg allocates a few blocks per image. Its memory manager is a public table, which is replaced
 * after jpeg_create_decompress(): then nothing is allocated per image, and no image can take more
 * than the arena.
 */
#ifndef STK_CODEC_JPEG_MEMORY_H
#define STK_CODEC_JPEG_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h needs it */

#include <jpeglib.h>

struct stk_jpeg_arena {
    uint8_t *base; /* page-aligned */
    size_t bytes;
    size_t used; /* set to 0 before each image */
};

/* Make cinfo allocate from the arena, through cinfo->client_data. Freed memory is not reused. A
 * full arena gives JERR_OUT_OF_MEMORY. */
void stk_jpeg_memory_install(j_common_ptr cinfo, struct stk_jpeg_arena *arena);

#endif
