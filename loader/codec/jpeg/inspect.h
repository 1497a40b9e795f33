/* inspect.h - finds JPEG files that decoders other than libjpeg decode to the same colors. */
#ifndef STK_CODEC_JPEG_INSPECT_H
#define STK_CODEC_JPEG_INSPECT_H

#include "loader/codec/image.h"

/* stk_image_kind.inspect: walks over the whole file. The format is JPEG if it has as many
 * components as the rows have channels, is gray or YCbCr, has Huffman codes, and chroma of one
 * sample for 1, 2 or 4 of luma along a side. */
int stk_jpeg_inspect(const struct stk_image_codec *codec, const stoker_encoded *in,
                     stoker_image_header *header, stoker_error *error);

#endif
