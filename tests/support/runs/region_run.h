/* region_run.h - decode parts of an image and compare them with the same part of the whole: each
 * once without notes, and once with those that the codec has made.
 *
 * Every buffer ends where its memory does. Pixels outside a wanted rectangle may have any value.
 */
#ifndef STK_TEST_REGION_RUN_H
#define STK_TEST_REGION_RUN_H

#include <criterion/criterion.h>
#include <stoker/codec.h>
#include <string.h>

#include "support/sets/decode.h"
#include "support/sets/image_codec.h"

struct stk_region_run {
    stoker_codec *codec;
    void *scratch;
    uint32_t channels;
    const uint8_t *bytes;
    size_t size;
    stoker_size image; /* its own size */
    /* The whole image at 1/8 to 8/8, or NULL until it is needed; 8/8 is decoded without a
     * region. */
    uint8_t *whole[9];
    stoker_region whole_at[9];
    uint8_t *pixels;
    size_t pixels_bytes; /* the whole image's */
    stoker_notes notes;  /* known once the codec has noted something */
    uint32_t known_runs; /* decoded with known notes */
    stoker_error error;
};

/* Discard the notes: the next decode makes new ones, of at most that many bytes. */
static inline void stk_region_renote(struct stk_region_run *run, size_t room_bytes)
{
    free(run->notes.room);
    run->notes = (stoker_notes){ .room = malloc(room_bytes), .room_bytes = room_bytes };
    cr_assert_not_null(run->notes.room);
}

/* The codec is destroyed by stk_region_close(). */
static inline struct stk_region_run stk_region_open(stoker_codec *codec, uint32_t channels,
                                                    const uint8_t *bytes, size_t size)
{
    struct stk_region_run run = {
        .codec = codec, .channels = channels, .bytes = bytes, .size = size
    };
    const stoker_encoded in = { .bytes = bytes, .size = size };
    cr_assert_eq(codec->open(codec->self, true, &run.scratch), STOKER_OK);
    memset(&run.error, 0, sizeof(run.error));
    cr_assert_eq(stk_decode_size(codec, &in, &run.image, &run.error), STOKER_OK);
    run.pixels_bytes = (size_t)run.image.height * run.image.width * channels;
    run.pixels = malloc(run.pixels_bytes);
    run.whole[8] = malloc(run.pixels_bytes);
    cr_assert_not_null(run.pixels);
    cr_assert_not_null(run.whole[8]);
    const stoker_region all = { 0, 0, run.image.height, run.image.width, 8 };
    cr_assert_eq(stk_decode_image(codec, run.scratch, &in, NULL, run.whole[8], run.pixels_bytes,
                                  &run.whole_at[8], &run.error),
                 STOKER_OK, "%s", run.error.message);
    cr_assert_arr_eq(&run.whole_at[8], &all, sizeof(all));
    stk_region_renote(&run, 1 << 12);
    return run;
}

static inline void stk_region_close(struct stk_region_run *run)
{
    for (int eighths = 0; eighths <= 8; eighths++)
        free(run->whole[eighths]);
    free(run->pixels);
    free(run->notes.room);
    run->codec->close(run->codec->self, run->scratch);
    stk_image_codec_destroy(&run->codec);
}

static inline int stk_region_decode_once(struct stk_region_run *run, stoker_notes *notes,
                                         const stoker_region *wanted, stoker_region *got)
{
    const stoker_encoded in = { .bytes = run->bytes, .size = run->size, .notes = notes };
    run->error.message[0] = '\0';
    return stk_decode_image(run->codec, run->scratch, &in, wanted, run->pixels, run->pixels_bytes,
                            got, &run->error);
}

/* The result without notes, which must be that with notes, too. */
static inline int stk_region_decode(struct stk_region_run *run, const stoker_region *wanted,
                                    stoker_region *got)
{
    stoker_notes *notes = &run->notes;
    const size_t stride = run->channels;
    stoker_region noted = { 0 };
    const int with = stk_region_decode_once(run, notes, wanted, &noted);
    uint8_t *pixels = run->pixels;
    run->pixels = malloc(run->pixels_bytes);
    cr_assert_not_null(run->pixels);
    run->known_runs += notes->known != NULL;
    if (notes->noted_bytes > 0) {
        cr_assert(with == STOKER_OK && notes->noted_bytes <= notes->room_bytes);
        notes->known = notes->room;
        notes->known_bytes = notes->noted_bytes;
        notes->noted_bytes = 0;
    }
    const int rc = stk_region_decode_once(run, NULL, wanted, got);
    cr_assert_eq(with, rc);
    if (rc == STOKER_OK) {
        cr_assert_arr_eq(&noted, got, sizeof(noted));
        const struct stk_image_range x = stk_image_range(wanted->x, wanted->width, got->eighths);
        const struct stk_image_range y = stk_image_range(wanted->y, wanted->height, got->eighths);
        for (uint32_t line = y.from; line < y.to; line++) {
            const size_t at = ((size_t)(line - got->y) * got->width + (x.from - got->x)) * stride;
            cr_assert(memcmp(pixels + at, run->pixels + at, (x.to - x.from) * stride) == 0);
        }
    }
    free(pixels);
    return rc;
}

/* The whole image at a scale that the codec has. */
static inline void stk_region_make_whole(struct stk_region_run *run, uint32_t eighths)
{
    if (run->whole[eighths] != NULL)
        return;
    const stoker_region all = { 0, 0, run->image.height, run->image.width, eighths };
    cr_assert_eq(stk_region_decode(run, &all, &run->whole_at[eighths]), STOKER_OK);
    cr_assert_eq(run->whole_at[eighths].eighths, eighths);
    cr_assert_eq(run->whole_at[eighths].height, (run->image.height * eighths + 7) / 8);
    cr_assert_eq(run->whole_at[eighths].width, (run->image.width * eighths + 7) / 8);
    run->whole[eighths] = malloc(run->pixels_bytes);
    cr_assert_not_null(run->whole[eighths]);
    memcpy(run->whole[eighths], run->pixels, run->pixels_bytes);
}

/* Decode a rectangle; its pixels must be those of the whole image at that scale. */
static inline void stk_region_check(struct stk_region_run *run, const stoker_region *wanted)
{
    stoker_region got = { 0 };
    memset(run->pixels, 0xA5, run->pixels_bytes);
    cr_assert_eq(stk_region_decode(run, wanted, &got), STOKER_OK, "%s", run->error.message);
    const uint32_t e = got.eighths;
    cr_assert(e >= wanted->eighths && e <= 8);
    const struct stk_image_range y = stk_image_range(wanted->y, wanted->height, e);
    const struct stk_image_range x = stk_image_range(wanted->x, wanted->width, e);
    cr_assert(got.y <= y.from && y.to <= got.y + got.height);
    cr_assert(got.x <= x.from && x.to <= got.x + got.width);
    uint8_t *pixels = run->pixels;
    run->pixels = malloc(run->pixels_bytes);
    stk_region_make_whole(run, e);
    const size_t whole_stride = (size_t)run->whole_at[e].width * run->channels;
    for (uint32_t line = y.from; line < y.to; line++) {
        const uint8_t *expected =
            run->whole[e] + line * whole_stride + (size_t)x.from * run->channels;
        const uint8_t *found =
            pixels + ((size_t)(line - got.y) * got.width + (x.from - got.x)) * run->channels;
        cr_assert(memcmp(found, expected, (size_t)(x.to - x.from) * run->channels) == 0,
                  "%u x %u at %u, %u of %u x %u, %u eighths: line %u differs", wanted->height,
                  wanted->width, wanted->y, wanted->x, run->image.height, run->image.width, e,
                  line);
    }
    free(run->pixels);
    run->pixels = pixels;
}

/* Every rectangle whose edges are multiples of `step`, or the image's; at every scale from 1 to 8
 * eighths if scaled. */
static inline void stk_region_check_all(struct stk_region_run *run, uint32_t step, bool scaled)
{
    const uint32_t height = run->image.height, width = run->image.width;
    for (uint32_t y = 0; y < height; y += step)
        for (uint32_t bottom = y + 1; bottom <= height; bottom += step)
            for (uint32_t x = 0; x < width; x += step)
                for (uint32_t right = x + 1; right <= width; right += step)
                    for (uint32_t e = scaled ? 1 : 8; e <= 8; e++) {
                        const stoker_region wanted = { y, x, bottom - y, right - x, e };
                        stk_region_check(run, &wanted);
                    }
}

/* Decode a damaged file of that size whole, and parts of it: all are refused with the same code, or
 * have the same pixels. Returns the code. */
static inline int stk_region_check_damaged(struct stk_region_run *run)
{
    const uint32_t height = run->image.height, width = run->image.width;
    const stoker_region parts[] = {
        { 0, 0, 1, 1, 8 },
        { 0, 0, (height + 1) / 2, width, 8 },
        { height / 3, width / 3, height / 3 + 1, width / 3 + 1, 8 },
        { height - 1, 0, 1, width, 8 },
        { 0, width / 2, height / 3 + 1, 1, 4 },
        { height / 2, 0, 1, width, 1 },
    };
    const stoker_encoded in = { .bytes = run->bytes, .size = run->size };
    stoker_region all;
    for (int eighths = 0; eighths < 8; eighths++) {
        free(run->whole[eighths]);
        run->whole[eighths] = NULL;
    }
    const int rc = stk_decode_image(run->codec, run->scratch, &in, NULL, run->whole[8],
                                    run->pixels_bytes, &all, &run->error);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        stoker_region got;
        if (rc == STOKER_OK)
            stk_region_check(run, &parts[i]);
        else
            cr_assert_eq(stk_region_decode(run, &parts[i], &got), rc, "part %zu: not \"%s\"", i,
                         run->error.message);
    }
    return rc;
}

/* The same for every flipped bit, of which `step` - 1 of `step` are left out, that leaves the size
 * as it is. Returns the number of those that were refused. */
static inline unsigned stk_region_check_flips(struct stk_region_run *run, uint8_t *bytes,
                                              size_t step)
{
    unsigned refused = 0;
    for (size_t bit = 0; bit < 8 * run->size; bit += step) {
        const stoker_encoded in = { .bytes = bytes, .size = run->size };
        stoker_size size;
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        if (stk_decode_size(run->codec, &in, &size, NULL) == STOKER_OK &&
            size.height == run->image.height && size.width == run->image.width)
            refused += stk_region_check_damaged(run) != STOKER_OK;
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    return refused;
}

#endif
