/* big_endian.h - codecs of rows with big-endian elements, as in IDX. */
#ifndef STK_CODEC_BIG_ENDIAN_H
#define STK_CODEC_BIG_ENDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

extern const stoker_codec stk_codec_be16;
extern const stoker_codec stk_codec_be32;
extern const stoker_codec stk_codec_be64;

/* Copy `size` bytes of elements of 2, 4 or 8 bytes to host byte order. */
void stk_big_endian_read(void *to, const uint8_t *from, size_t size, size_t element_bytes);

/* Returns the codec for elements of that size; NULL for one byte, which needs none. */
const stoker_codec *stk_codec_big_endian(size_t element_bytes);

#endif
