/* fuzz_jpeg.c - any bytes as a JPEG file: a worker that has just decoded them, and others before,
 * gives what a fresh one gives, and libjpeg alone.
 */
#include "fuzz/codec_input.h"
#include "loader/codec/jpeg/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Our decoder of codes and libjpeg's. */
static void decode_both_ways(const uint8_t *bytes, size_t size,
                             const struct stk_image_options *options)
{
    const struct stk_image_shape *shape = &options->shape;
    const size_t row_bytes = (size_t)shape->height * shape->width * shape->channels;
    struct stk_image_options plain = *options;
    plain.full_only = true;
    stoker_codec *codecs[2] = { NULL, NULL };
    struct stk_fuzz_decoder decoders[2];
    int rc[2];
    for (int way = 0; way < 2; way++) {
        STK_FUZZ_MUST(stk_image_codec_create(&codecs[way], &stk_image_jpeg,
                                             way == 0 ? options : &plain) == STOKER_OK);
        decoders[way] = stk_fuzz_open(codecs[way], row_bytes);
        rc[way] = stk_fuzz_decode(&decoders[way], bytes, size);
    }
    STK_FUZZ_MUST(rc[0] == rc[1]);
    STK_FUZZ_MUST(rc[0] != STOKER_OK || memcmp(decoders[0].row, decoders[1].row, row_bytes) == 0);
    for (int way = 0; way < 2; way++) {
        stk_fuzz_close(&decoders[way]);
        stk_image_codec_destroy(&codecs[way]);
    }
}

static void decode(const uint8_t *bytes, size_t size, const struct stk_image_shape *shape)
{
    const struct stk_image_options options = { .shape = *shape, .limits = { .scans_max = 20 } };
    stk_fuzz_decode_twice(&stk_image_jpeg, &options, bytes, size);
    decode_both_ways(bytes, size, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_image_shape shape;
    const struct stk_image_limits limits = { .pixels_max = STK_FUZZ_PIXELS_MAX };
    if (stk_codec_jpeg_probe(bytes, size, &limits, &shape, NULL) != STOKER_OK)
        return 0;
#ifdef STOKER_HAVE_JPEG
    decode(bytes, size, &shape);
    shape.channels = 4 - shape.channels; /* gray from color, color from gray */
    decode(bytes, size, &shape);
#else
    (void)decode;
#endif
    STK_FUZZ_MUST(stk_fault_live_bytes() == 0);
    return 0;
}
