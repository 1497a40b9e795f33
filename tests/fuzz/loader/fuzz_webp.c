/* fuzz_webp.c - any bytes as a WebP file: a worker that has just decoded them, and others before,
 * gives what a fresh one gives.
 */
#include "fuzz/codec_input.h"
#include "loader/codec/webp/webp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void decode(const uint8_t *bytes, size_t size, const struct stk_image_shape *shape)
{
    const struct stk_image_options options = { .shape = *shape };
    stk_fuzz_decode_twice(&stk_image_webp, &options, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_image_shape shape;
    const struct stk_image_limits limits = { .pixels_max = STK_FUZZ_PIXELS_MAX };
    if (stk_codec_webp_probe(bytes, size, &limits, &shape, NULL) != STOKER_OK)
        return 0;
#ifdef STOKER_HAVE_WEBP
    decode(bytes, size, &shape);
    shape.channels = 1;
    decode(bytes, size, &shape);
#else
    (void)decode;
#endif
    STK_FUZZ_MUST(stk_fault_live_bytes() == 0);
    return 0;
}
