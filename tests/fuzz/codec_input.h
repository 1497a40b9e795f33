/* codec_input.h - for fuzz targets of codecs: decode, and stop the program at a contradiction. */
#ifndef STK_FUZZ_CODEC_INPUT_H
#define STK_FUZZ_CODEC_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/codec.h>
#include <string.h>

#include "loader/base/fault.h"
#include "support/sets/decode.h"
#include "support/sets/image_codec.h"

enum { STK_FUZZ_PIXELS_MAX = 1 << 14 };

#define STK_FUZZ_MUST(condition)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct stk_fuzz_decoder {
    const stoker_codec *codec;
    void *scratch;
    uint8_t *row; /* ends where its memory does */
    size_t row_bytes;
};

static inline struct stk_fuzz_decoder stk_fuzz_open(const stoker_codec *codec, size_t row_bytes)
{
    struct stk_fuzz_decoder decoder = { .codec = codec, .row_bytes = row_bytes };
    STK_FUZZ_MUST(codec->open == NULL ||
                  codec->open(codec->self, false, &decoder.scratch) == STOKER_OK);
    decoder.row = malloc(row_bytes);
    STK_FUZZ_MUST(decoder.row != NULL);
    return decoder;
}

static inline void stk_fuzz_close(struct stk_fuzz_decoder *decoder)
{
    if (decoder->codec->close != NULL)
        decoder->codec->close(decoder->codec->self, decoder->scratch);
    free(decoder->row);
}

static inline int stk_fuzz_decode(struct stk_fuzz_decoder *decoder, const uint8_t *bytes,
                                  size_t size)
{
    const stoker_encoded in = { .bytes = bytes, .size = size };
    stoker_error error = { .message = "" };
    memset(decoder->row, 0, decoder->row_bytes);
    const int rc = stk_decode_row(decoder->codec, decoder->scratch, &in, decoder->row,
                                  decoder->row_bytes, &error);
    STK_FUZZ_MUST(rc <= 0);
    STK_FUZZ_MUST(rc != STOKER_ENOMEM); /* the scratch must do for whatever the limits allow */
    STK_FUZZ_MUST(rc == 0 || error.message[0] != '\0');
    return rc;
}

/* A decoder that has decoded the bytes, and a part of them, before must give what a fresh one
 * gives. */
static inline void stk_fuzz_decode_twice(const struct stk_image_kind *kind,
                                         const struct stk_image_options *options,
                                         const uint8_t *bytes, size_t size)
{
    const struct stk_image_shape *shape = &options->shape;
    const size_t row_bytes = (size_t)shape->height * shape->width * shape->channels;
    stoker_codec *codec = NULL;
    STK_FUZZ_MUST(stk_image_codec_create(&codec, kind, options) == STOKER_OK);
    struct stk_fuzz_decoder used = stk_fuzz_open(codec, row_bytes);
    struct stk_fuzz_decoder fresh = stk_fuzz_open(codec, row_bytes);
    const int first = stk_fuzz_decode(&used, bytes, size);
    (void)stk_fuzz_decode(&used, bytes, size / 2);
    STK_FUZZ_MUST(stk_fuzz_decode(&used, bytes, size) == first);
    STK_FUZZ_MUST(stk_fuzz_decode(&fresh, bytes, size) == first);
    if (first == STOKER_OK)
        STK_FUZZ_MUST(memcmp(used.row, fresh.row, row_bytes) == 0);
    stk_fuzz_close(&used);
    stk_fuzz_close(&fresh);
    stk_image_codec_destroy(&codec);
}

#endif
