/* big_endian.h - codecs of rows with big-endian elements, as in IDX. */
#ifndef STK_CODEC_BIG_ENDIAN_H
#define STK_CODEC_BIG_ENDIAN_H

#include <stddef.h>
#include <stoker/codec.h>

extern const stoker_codec stk_codec_be16;
extern const stoker_codec stk_codec_be32;
extern const stoker_codec stk_codec_be64;

/* Returns the codec for elements of that size; NULL for one byte, which needs none. */
const stoker_codec *stk_codec_big_endian(size_t element_bytes);

#endif
