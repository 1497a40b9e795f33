/* fuzz_jpeg.c - any bytes as a JPEG file: a worker that has just decoded them, and others before,
 * gives what a fresh one gives.
 */
#include "fuzz/codec_input.h"
#include "loader/codec/jpeg/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void decode(const uint8_t *bytes, size_t size, const struct stk_image_shape *shape)
{
    const size_t row_bytes = (size_t)shape->height * shape->width * shape->channels;
    const struct stk_image_options options = { .shape = *shape, .limits = { .scans_max = 20 } };
    stoker_codec *codec = NULL;
    STK_FUZZ_MUST(stk_image_codec_create(&codec, &stk_image_jpeg, &options) == STOKER_OK);
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_image_shape shape;
    const struct stk_image_limits limits = { .pixels_max = STK_FUZZ_PIXELS_MAX };
    if (stk_codec_jpeg_probe(bytes, size, &limits, &shape, NULL) != STOKER_OK)
        return 0;
#ifdef STOKER_HAVE_JPEG
    decode(bytes, size, &shape);
    shape.channels = 4 - shape.channels; /* gray from colour, colour from gray */
    decode(bytes, size, &shape);
#else
    (void)decode;
#endif
    STK_FUZZ_MUST(stk_fault_live_bytes() == 0);
    return 0;
}
