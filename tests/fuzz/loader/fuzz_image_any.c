/* fuzz_image_any.c - any bytes as an image of any size and kind, decoded as a loader that resizes
 * does: the answer depends on neither the images before nor the room behind the pixels, and an
 * image decoded in its own size is decoded the same to a row of that size.
 *
 *   input  [how:1] image     how: channels of a row
 */
#include "fuzz/codec_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PIXELS_MAX = STK_FUZZ_PIXELS_MAX, PIXELS_BYTES = 4 * PIXELS_MAX };

struct worker {
    const stoker_codec *codec;
    void *scratch;
};

static struct worker open_worker(const struct stk_image_codec *image)
{
    struct worker worker = { .codec = &image->codec };
    STK_FUZZ_MUST(worker.codec->open(worker.codec->self, true, &worker.scratch) == STOKER_OK);
    return worker;
}

/* Into memory of just that size, so that ASan sees a byte too many. */
static int decode_own_size(const struct worker *worker, const stoker_encoded *in,
                           size_t pixels_bytes, uint8_t **pixels, stoker_size *size)
{
    stoker_error error = { .message = "" };
    *pixels = calloc(1, pixels_bytes > 0 ? pixels_bytes : 1);
    STK_FUZZ_MUST(*pixels != NULL);
    stoker_region got = { 0 };
    const int rc = stk_decode_image(worker->codec, worker->scratch, in, NULL, *pixels, pixels_bytes,
                                    &got, &error);
    *size = (stoker_size){ got.height, got.width };
    STK_FUZZ_MUST(rc <= 0 && rc != STOKER_ENOMEM);
    STK_FUZZ_MUST(rc == 0 || error.message[0] != '\0');
    return rc;
}

static void decode_as_row(const stoker_encoded *in, const struct stk_image_shape *shape,
                          const uint8_t *expected)
{
    struct stk_image_codec image;
    const struct stk_image_options options = { .shape = *shape };
    STK_FUZZ_MUST(stk_image_codec_init(&image, NULL, &options) == STOKER_OK);
    struct stk_fuzz_decoder decoder =
        stk_fuzz_open(&image.codec, (size_t)shape->height * shape->width * shape->channels);
    STK_FUZZ_MUST(stk_fuzz_decode(&decoder, in->bytes, in->size) == STOKER_OK);
    STK_FUZZ_MUST(memcmp(decoder.row, expected, decoder.row_bytes) == 0);
    stk_fuzz_close(&decoder);
}

static void check(const struct stk_image_codec *image, const stoker_encoded *in, uint32_t channels)
{
    const stoker_encoded half = { .bytes = in->bytes, .size = in->size / 2 };
    const struct worker used = open_worker(image);
    const struct worker fresh = open_worker(image);
    stoker_size size = { 0 };
    stoker_size again = { 0 };
    uint8_t *pixels;
    uint8_t *others;
    (void)decode_own_size(&used, &half, PIXELS_BYTES, &others, &again);
    free(others);
    const int rc = decode_own_size(&used, in, PIXELS_BYTES, &pixels, &size);
    STK_FUZZ_MUST(decode_own_size(&fresh, in, PIXELS_BYTES, &others, &again) == rc);
    free(others);
    if (rc == STOKER_OK) {
        const size_t used_bytes = (size_t)size.height * size.width * channels;
        const struct stk_image_shape shape = { size.height, size.width, channels };
        STK_FUZZ_MUST(size.height > 0 && size.width > 0);
        STK_FUZZ_MUST((uint64_t)size.height * size.width <= PIXELS_MAX);
        STK_FUZZ_MUST(decode_own_size(&fresh, in, used_bytes, &others, &again) == STOKER_OK);
        STK_FUZZ_MUST(memcmp(pixels, others, used_bytes) == 0);
        free(others);
        STK_FUZZ_MUST(decode_own_size(&fresh, in, used_bytes - 1, &others, &again) ==
                      STOKER_ELIMIT);
        free(others);
        decode_as_row(in, &shape, pixels);
    }
    free(pixels);
    used.codec->close(used.codec->self, used.scratch);
    fresh.codec->close(fresh.codec->self, fresh.scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint32_t channels[] = { 1, 3, 4 };
    if (size < 1)
        return 0;
    const struct stk_image_options options = {
        .shape = { 8, 8, channels[bytes[0] % 3] },
        .any_pixels_max = PIXELS_MAX,
        .warnings_fail = (bytes[0] & 0x80) != 0,
    };
    const stoker_encoded in = { .bytes = bytes + 1, .size = size - 1 };
    struct stk_image_codec image;
    if (stk_image_codec_init(&image, NULL, &options) != STOKER_OK)
        return 0; /* a build without any image codec */
    check(&image, &in, options.shape.channels);
    STK_FUZZ_MUST(stk_fault_live_bytes() == 0);
    return 0;
}
