/* decode.h - call a codec's decode() for one field of one sample. */
#ifndef STK_TEST_DECODE_H
#define STK_TEST_DECODE_H

#include <stddef.h>
#include <stoker/codec.h>

static inline int stk_decode_row(const stoker_codec *codec, void *scratch, const stoker_encoded *in,
                                 void *data, size_t bytes, stoker_error *error)
{
    stoker_row row = { .data = data, .bytes_max = bytes };
    const stoker_decoded out = {
        .struct_size = sizeof(out), .rows = &row, .field_count = 1, .sample_count = 1
    };
    return codec->decode(codec->self, scratch, in, &out, error);
}

/* Decode an image in its own size, or a rectangle of it; wanted: NULL = all. */
static inline int stk_decode_image(const stoker_codec *codec, void *scratch,
                                   const stoker_encoded *in, const stoker_region *wanted,
                                   void *pixels, size_t bytes, stoker_region *got,
                                   stoker_error *error)
{
    stoker_row row = { .data = pixels, .bytes_max = bytes };
    const stoker_decoded out = { .struct_size = sizeof(out),
                                 .rows = &row,
                                 .field_count = 1,
                                 .sample_count = 1,
                                 .wanted = wanted,
                                 .got = got };
    return codec->decode(codec->self, scratch, in, &out, error);
}

static inline int stk_decode_size(const stoker_codec *codec, const stoker_encoded *in,
                                  stoker_size *size, stoker_error *error)
{
    stoker_image_header header = { .height = 0 };
    const int rc = codec->probe(codec->self, in, false, &header, error);
    *size = (stoker_size){ header.height, header.width };
    return rc;
}

#endif
