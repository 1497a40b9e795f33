/* fuzz_png.c - any bytes as a PNG file: with and without the fast path the answer is the same, also
 * for a mask's values.
 *
 * Once as they come, and once with all checksums put right, or nothing behind them is reached.
 */
#include "fuzz/codec_input.h"
#include "loader/codec/png/png.h"
#include "support/files/png_sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static stoker_codec *make(const struct stk_image_shape *shape, bool full_only, bool values)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = *shape,
                                               .full_only = full_only,
                                               .values = values };
    STK_FUZZ_MUST(stk_image_codec_create(&codec, &stk_image_png, &options) == STOKER_OK);
    return codec;
}

static void decode(const uint8_t *bytes, size_t size, const struct stk_image_shape *shape,
                   bool values)
{
    const size_t row_bytes = (size_t)shape->height * shape->width * shape->channels;
    stoker_codec *quick = make(shape, false, values);
    stoker_codec *full = make(shape, true, values);
    struct stk_fuzz_decoder by_quick = stk_fuzz_open(quick, row_bytes);
    struct stk_fuzz_decoder by_full = stk_fuzz_open(full, row_bytes);
    const int rc = stk_fuzz_decode(&by_quick, bytes, size);
    const int full_rc = stk_fuzz_decode(&by_full, bytes, size);
    STK_FUZZ_MUST(rc == full_rc ||
                  rc == STOKER_OK); /* libdeflate takes some codes that zlib refuses */
    STK_FUZZ_MUST(full_rc != STOKER_OK || memcmp(by_quick.row, by_full.row, row_bytes) == 0);
    stk_fuzz_close(&by_quick);
    stk_fuzz_close(&by_full);
    stk_image_codec_destroy(&quick);
    stk_image_codec_destroy(&full);
}

static void try_file(const uint8_t *bytes, size_t size)
{
    struct stk_image_shape shape;
    const struct stk_image_limits limits = { .pixels_max = STK_FUZZ_PIXELS_MAX };
    if (stk_codec_png_probe(bytes, size, &limits, &shape, NULL) != STOKER_OK)
        return;
    decode(bytes, size, &shape, false);
    static const uint32_t others[] = { 0, 3, 0, 4, 1 }; /* indexed by channels: 1, 3, 4 */
    shape.channels = others[shape.channels];
    decode(bytes, size, &shape, false);
    shape.channels = 1;
    decode(bytes, size, &shape, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
#ifdef STOKER_HAVE_PNG
    try_file(bytes, size);
    uint8_t *mended = malloc(size + 1);
    STK_FUZZ_MUST(mended != NULL);
    memcpy(mended, bytes, size);
    stk_png_mend(mended, size);
    try_file(mended, size);
    free(mended);
#else
    (void)try_file;
    (void)bytes;
    (void)size;
#endif
    STK_FUZZ_MUST(stk_fault_live_bytes() == 0);
    return 0;
}
