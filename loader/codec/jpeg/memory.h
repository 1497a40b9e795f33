/* memory.h - libjpeg's memory methods on an arena.
 *
 * libjpeg takes and frees a few blocks for every image. Its methods are a public table,
 * so they can be exchanged after jpeg_create_decompress(): then nothing is allocated per image,
 * and no image can take more than the arena has.
 */
#ifndef STK_CODEC_JPEG_MEMORY_H
#define STK_CODEC_JPEG_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h wants it before */

#include <jpeglib.h>

struct stk_jpeg_arena {
    uint8_t *base; /* aligned to a page */
    size_t bytes;
    size_t used; /* set to 0 before each image */
};

/* Let cinfo take all further memory from the arena, which it finds in cinfo->client_data. What
 * libjpeg frees is not reused. Without room it fails with JERR_OUT_OF_MEMORY. */
void stk_jpeg_memory_install(j_common_ptr cinfo, struct stk_jpeg_arena *arena);

#endif
