/* test_webp.c - WebP files become the rows that libwebp makes of them, or are refused.
 *
 * Method: libwebp writes small files of every kind and reads them back in its plainest way; the
 * codec must agree to the byte.
 */
#include "loader/codec/webp/webp.h"

#include "loader/base/fault.h"
#include "support/leaks.h"

#ifndef STOKER_HAVE_WEBP

CleanTest(codec_webp, a_build_without_libwebp_says_so)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = { 1, 1, 1 } };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_webp, &options), STOKER_ENOTSUP);
    cr_assert_null(codec);
}

#else

#include "support/files/webp_files.h"
#include "support/runs/image_run.h"

static struct stk_image_run open_decoder(uint32_t height, uint32_t width, uint32_t channels)
{
    const struct stk_image_options options = { .shape = { height, width, channels } };
    return stk_image_run_open(&stk_image_webp, &options);
}

static const uint32_t row_channels[] = { 1, 3, 4 };

static void check_kind(const struct stk_webp_kind *kind)
{
    struct stk_webp_file file = stk_webp_write(kind);
    for (size_t c = 0; c < 3; c++) {
        struct stk_image_run decoder = open_decoder(kind->height, kind->width, row_channels[c]);
        uint8_t *expected = malloc(decoder.run.row_bytes);
        cr_assert_not_null(expected);
        stk_webp_expect(&file, row_channels[c], expected);
        for (int again = 0; again < 2; again++) {
            memset(decoder.run.row, 0xA5, decoder.run.row_bytes);
            cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_OK, "%s",
                         decoder.run.error.message);
            cr_assert_arr_eq(decoder.run.row, expected, decoder.run.row_bytes, "%ux%u, %s%s, to %u",
                             kind->height, kind->width, kind->lossless ? "lossless" : "lossy",
                             kind->alpha ? " with alpha" : "", row_channels[c]);
        }
        free(expected);
        stk_image_run_close(&decoder);
    }
    free(file.at);
}

CleanTest(codec_webp, every_kind_becomes_what_libwebp_makes_of_it)
{
    static const uint32_t sides[] = { 1, 2, 7, 8, 16, 17, 33, 70 };
    for (size_t h = 0; h < sizeof(sides) / sizeof(sides[0]); h++)
        for (size_t w = 0; w < sizeof(sides) / sizeof(sides[0]); w++)
            for (uint32_t sort = 0; sort < 4; sort++)
                check_kind(&(struct stk_webp_kind){ .height = sides[h],
                                                    .width = sides[w],
                                                    .lossless = (sort & 1) != 0,
                                                    .alpha = (sort & 2) != 0 });
}

/* The same values as of PNG files: test_png.c. */
CleanTest(codec_webp, lossless_colors_are_kept_and_gray_is_the_luma_of_bt_601)
{
    static const struct {
        uint8_t color[4];
        uint8_t gray;
    } known[] = {
        { { 0, 0, 255, 255 }, 29 },  { { 255, 0, 0, 0 }, 76 },      { { 0, 255, 0, 7 }, 150 },
        { { 255, 255, 0, 9 }, 226 }, { { 10, 200, 30, 128 }, 124 }, { { 77, 77, 77, 255 }, 77 },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct stk_webp_kind kind = { 3, 5, true, true, known[i].color };
        struct stk_webp_file file = stk_webp_write(&kind);
        struct stk_image_run color = open_decoder(3, 5, 4);
        struct stk_image_run gray = open_decoder(3, 5, 1);
        cr_assert_eq(stk_codec_run(&color.run, file.at, file.size), STOKER_OK);
        cr_assert_eq(stk_codec_run(&gray.run, file.at, file.size), STOKER_OK);
        cr_assert_arr_eq(color.run.row + 4, known[i].color, 4, "color %zu", i);
        cr_assert_eq(gray.run.row[14], known[i].gray, "%zu: %u", i, gray.run.row[14]);
        stk_image_run_close(&color);
        stk_image_run_close(&gray);
        free(file.at);
    }
}

static void check_refused(const struct stk_webp_file *file, struct stk_image_run *decoder, int code,
                          const char *says)
{
    const int rc = stk_codec_run(&decoder->run, file->at, file->size);
    cr_assert_eq(rc, code, "%d: %s", rc, decoder->run.error.message);
    cr_assert_not_null(strstr(decoder->run.error.message, says), "%s", decoder->run.error.message);
}

CleanTest(codec_webp, animations_are_refused)
{
    enum { ANIMATION = 0x02 };
    const struct stk_webp_kind kind = { 6, 7, true, false, NULL };
    struct stk_webp_file file = stk_webp_write(&kind);
    struct stk_image_run decoder = open_decoder(6, 7, 3);
    const uint8_t canvas[10] = { 0, 0, 0, 0, 7 - 1, 0, 0, 6 - 1, 0, 0 };
    stk_webp_put_chunk(&file, "VP8X", canvas, sizeof(canvas));
    cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_OK, "%s",
                 decoder.run.error.message);
    file.at[20] = ANIMATION;
    check_refused(&file, &decoder, STOKER_EFORMAT, "animated");
    file.at[20] = 0;
    file.at[24] = 8; /* the canvas, wider than its frame */
    check_refused(&file, &decoder, STOKER_EFORMAT, "on a canvas");
    free(file.at);
    stk_image_run_close(&decoder);
}

CleanTest(codec_webp, metadata_and_what_follows_the_file_are_passed_over)
{
    const struct stk_webp_kind kind = { 6, 7, true, false, NULL };
    const uint8_t canvas[10] = { 0x0C, 0, 0, 0, 7 - 1, 0, 0, 6 - 1, 0, 0 };
    struct stk_webp_file file = stk_webp_write(&kind);
    struct stk_image_run decoder = open_decoder(6, 7, 3);
    uint8_t expected[6 * 7 * 3];
    stk_webp_expect(&file, 3, expected);
    stk_webp_put_chunk(&file, "EXIF", "orientation", 11);
    stk_webp_put_chunk(&file, "VP8X", canvas, sizeof(canvas));
    uint8_t *followed = malloc(file.size + 5);
    cr_assert_not_null(followed);
    memcpy(followed, file.at, file.size);
    memcpy(followed + file.size, "after", 5);
    cr_assert_eq(stk_codec_run(&decoder.run, followed, file.size + 5), STOKER_OK, "%s",
                 decoder.run.error.message);
    cr_assert_arr_eq(decoder.run.row, expected, sizeof(expected));
    free(followed);
    free(file.at);
    stk_image_run_close(&decoder);
}

/* ---- damage ---- */

static const struct stk_webp_kind damaged_kinds[] = {
    { 19, 18, false, false, NULL },
    { 19, 18, false, true, NULL },
    { 9, 10, true, false, NULL },
    { 9, 10, true, true, NULL },
};
enum { DAMAGED = sizeof(damaged_kinds) / sizeof(damaged_kinds[0]) };

/* Of `channels` both, so that what is damaged is looked at. */
static struct stk_image_run open_damaged(size_t k)
{
    return open_decoder(damaged_kinds[k].height, damaged_kinds[k].width, k % 2 == 0 ? 3 : 4);
}

/* As if a writer had been cut off and its lengths put right: what is missing is pixels. */
CleanTest(codec_webp, an_image_cut_short_within_its_chunk_is_refused)
{
    for (size_t k = 0; k < DAMAGED; k++) {
        struct stk_webp_file file = stk_webp_write(&damaged_kinds[k]);
        struct stk_image_run decoder = open_damaged(k);
        const bool extended = memcmp(file.at + 12, "VP8X", 4) == 0;
        size_t chunk = extended ? 30 : 12;
        if (memcmp(file.at + chunk, "ALPH", 4) == 0)
            chunk += 8 + (stk_load_le32(file.at + chunk + 4) + 1) / 2 * 2;
        const uint32_t whole = stk_load_le32(file.at + chunk + 4);
        for (uint32_t body = whole * 3 / 4; body > 0; body--) {
            stk_store_le32(file.at + chunk + 4, body);
            stk_store_le32(file.at + 4, (uint32_t)(chunk + body + body % 2));
            const int rc = stk_image_run_alike(&decoder, file.at, chunk + 8 + body + body % 2);
            cr_assert_lt(rc, 0, "file %zu, %u bytes of %u", k, body, whole);
        }
        stk_image_run_close(&decoder);
        free(file.at);
    }
}

/* ---- limits ---- */

CleanTest(codec_webp, huge_dimensions_are_refused_before_memory_is_taken)
{
    const struct stk_webp_kind kind = { 6, 7, true, false, NULL };
    const uint8_t canvas[10] = { 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
    struct stk_webp_file file = stk_webp_write(&kind);
    struct stk_image_run decoder = open_decoder(6, 7, 3);
    const uint64_t allocations = stk_fault_allocations();
    stk_store_le32(file.at + 21, 0x0FFFFFFF); /* 16384 x 16384 */
    check_refused(&file, &decoder, STOKER_EFORMAT, "16384 x 16384");
    stk_webp_put_chunk(&file, "VP8X", canvas, sizeof(canvas));
    check_refused(&file, &decoder, STOKER_ELIMIT, "16777216 x 16777216");
    cr_assert_eq(stk_fault_allocations(), allocations);
    free(file.at);
    stk_image_run_close(&decoder);
}

/* Decode in its own size into room for `pixels_bytes` bytes. */
static int decode_own_size(const stoker_codec *codec, const struct stk_webp_file *file,
                           uint8_t *pixels, size_t pixels_bytes, stoker_size *size)
{
    void *scratch = NULL;
    stoker_error error = { .message = "" };
    const stoker_encoded in = { .bytes = file->at, .size = file->size };
    cr_assert_eq(codec->open(codec->self, true, &scratch), STOKER_OK);
    stoker_region got = { 0 };
    const int rc = stk_decode_image(codec, scratch, &in, NULL, pixels, pixels_bytes, &got, &error);
    *size = (stoker_size){ got.height, got.width };
    codec->close(codec->self, scratch);
    return rc;
}

CleanTest(codec_webp, an_image_is_decoded_in_its_own_size_up_to_the_limit)
{
    enum { PIXELS_MAX = 20 * 30 };
    static uint8_t pixels[4 * PIXELS_MAX], expected[4 * PIXELS_MAX];
    static const uint32_t sizes[][2] = { { 1, 1 }, { 20, 30 }, { 30, 20 }, { 7, 9 }, { 600, 1 } };
    for (size_t c = 0; c < 3; c++) {
        stoker_codec *codec = NULL;
        const struct stk_image_options options = { .shape = { 4, 4, row_channels[c] },
                                                   .any_pixels_max = PIXELS_MAX };
        cr_assert_eq(stk_image_codec_create(&codec, &stk_image_webp, &options), STOKER_OK);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            const struct stk_webp_kind kind = { sizes[i][0], sizes[i][1], i % 2 == 0, true, NULL };
            struct stk_webp_file file = stk_webp_write(&kind);
            const size_t bytes = (size_t)kind.height * kind.width * row_channels[c];
            stoker_size size = { 0 };
            cr_assert_eq(decode_own_size(codec, &file, pixels, bytes, &size), STOKER_OK);
            cr_assert(size.height == kind.height && size.width == kind.width);
            stk_webp_expect(&file, row_channels[c], expected);
            cr_assert_arr_eq(pixels, expected, bytes);
            cr_assert_eq(decode_own_size(codec, &file, pixels, bytes - 1, &size), STOKER_ELIMIT);
            free(file.at);
        }
        const struct stk_webp_kind large = { 20, 31, true, false, NULL };
        struct stk_webp_file file = stk_webp_write(&large);
        stoker_size size = { 0 };
        cr_assert_eq(decode_own_size(codec, &file, pixels, sizeof(pixels), &size), STOKER_ELIMIT);
        free(file.at);
        stk_image_codec_destroy(&codec);
    }
}

#endif
