/* test_png_damage.c - damaged and hostile PNG files: the right row, or an error, at once.
 *
 * Method: every prefix and every flipped bit of a small corpus goes to both paths. All of a PNG
 * file is under some checksum, so whatever is accepted must be the picture that was written.
 */
#include "loader/codec/png/png.h"

#include <criterion/criterion.h>

#ifdef STOKER_HAVE_PNG
#include "loader/base/fault.h"
#include "support/files/png_chunks.h"
#include "support/leaks.h"
#include "support/runs/codec_run.h"
#include "support/sets/image_codec.h"

static struct stk_picture picture;
static struct stk_file_bytes file;
static struct stk_file_bytes changed;

/* The same file to the codec as it is used, and to its full path alone. */
struct both {
    stoker_codec *codec[2];
    struct stk_codec_run run[2];
};

static struct both open_both(uint32_t height, uint32_t width, uint32_t channels, bool values)
{
    struct both both;
    for (int i = 0; i < 2; i++) {
        const struct stk_image_options options = { .shape = { height, width, channels },
                                                   .full_only = i == 1,
                                                   .values = values };
        cr_assert_eq(stk_image_codec_create(&both.codec[i], &stk_image_png, &options), STOKER_OK);
        both.run[i] = stk_codec_run_open(both.codec[i], (size_t)height * width * channels);
    }
    return both;
}

static void close_both(struct both *both)
{
    for (int i = 0; i < 2; i++) {
        stk_codec_run_close(&both->run[i]);
        stk_image_codec_destroy(&both->codec[i]);
    }
}

/* Both must say the same. */
static int decode_both(struct both *both, const uint8_t *bytes, size_t size)
{
    const int rc = stk_codec_run(&both->run[0], bytes, size);
    const int full = stk_codec_run(&both->run[1], bytes, size);
    cr_assert_eq(rc, full, "%d (%s) and %d (%s)", rc, both->run[0].error.message, full,
                 both->run[1].error.message);
    if (rc == STOKER_OK)
        cr_assert_arr_eq(both->run[0].row, both->run[1].row, both->run[0].row_bytes);
    return rc;
}

struct sort {
    uint8_t color;
    uint8_t depth;
    bool transparent;
    bool interlaced;
    uint32_t channels; /* the row's */
    size_t piece_bytes;
    bool values; /* as a mask has them */
};

static const struct sort corpus[] = {
    { PNG_COLOR_TYPE_GRAY, 8, false, false, 1, 0, false },
    { PNG_COLOR_TYPE_RGB, 8, false, false, 3, 9, false },
    { PNG_COLOR_TYPE_RGB_ALPHA, 8, false, false, 4, 0, false },
    { PNG_COLOR_TYPE_PALETTE, 4, true, false, 4, 0, false },
    { PNG_COLOR_TYPE_GRAY_ALPHA, 16, false, true, 4, 0, false },
    { PNG_COLOR_TYPE_PALETTE, 8, false, false, 1, 0, true },
    { PNG_COLOR_TYPE_PALETTE, 2, true, true, 1, 7, true },
};
enum { CORPUS = sizeof(corpus) / sizeof(corpus[0]), HEIGHT = 5, WIDTH = 6 };

/* Write file number i of the corpus, with text in front of the pixels. */
static void make(size_t i)
{
    picture = (struct stk_picture){ .width = WIDTH,
                                    .height = HEIGHT,
                                    .color = corpus[i].color,
                                    .depth = corpus[i].depth,
                                    .transparent = corpus[i].transparent,
                                    .interlaced = corpus[i].interlaced,
                                    .filters = PNG_ALL_FILTERS };
    stk_picture_paint(&picture, 40 + i);
    stk_picture_write(&picture, &changed);
    stk_png_rebuild(&file, &changed, corpus[i].piece_bytes, "tEXt", "a\0b", 3);
}

CleanTest(codec_png_damage, every_prefix_is_refused)
{
    for (size_t i = 0; i < CORPUS; i++) {
        make(i);
        struct both both = open_both(HEIGHT, WIDTH, corpus[i].channels, corpus[i].values);
        for (size_t size = 0; size < file.size; size++) {
            const int rc = decode_both(&both, file.at, size);
            cr_assert_eq(rc, STOKER_ETRUNCATED, "file %zu, %zu bytes of %zu: %d", i, size,
                         file.size, rc);
        }
        cr_assert_eq(decode_both(&both, file.at, file.size), STOKER_OK);
        close_both(&both);
    }
}

CleanTest(codec_png_damage, a_flipped_bit_never_changes_a_row)
{
    unsigned survived = 0;
    for (size_t i = 0; i < CORPUS; i++) {
        make(i);
        struct both both = open_both(HEIGHT, WIDTH, corpus[i].channels, corpus[i].values);
        const size_t row_bytes = both.run[0].row_bytes;
        uint8_t right[HEIGHT * WIDTH * 4];
        cr_assert_eq(decode_both(&both, file.at, file.size), STOKER_OK);
        memcpy(right, both.run[0].row, row_bytes);
        for (size_t bit = 0; bit < 8 * file.size; bit++) {
            file.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
            if (decode_both(&both, file.at, file.size) == STOKER_OK) {
                survived++;
                cr_assert_arr_eq(both.run[0].row, right, row_bytes, "file %zu, bit %zu", i, bit);
            }
            file.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        close_both(&both);
    }
    cr_assert_eq(survived, 0, "%u damaged files were accepted", survived);
}

/* With every sum put right again, the contents themselves are wrong. */
CleanTest(codec_png_damage, both_paths_agree_about_flipped_bits_under_right_sums)
{
    unsigned accepted = 0;
    for (size_t i = 0; i < CORPUS; i++) {
        make(i);
        struct both both = open_both(HEIGHT, WIDTH, corpus[i].channels, corpus[i].values);
        for (size_t bit = 8 * 8; bit < 8 * file.size; bit++) {
            changed = file;
            changed.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
            stk_png_mend(changed.at, changed.size);
            accepted += decode_both(&both, changed.at, changed.size) == STOKER_OK;
        }
        close_both(&both);
    }
    cr_assert_gt(accepted, 100); /* text, gamma, palette, flipped sums: nothing wrong with those */
}

CleanTest(codec_png_damage, idat_in_pieces_and_foreign_chunks_are_read)
{
    static const size_t pieces[] = { 1, 2, 7, 64, 0 };
    for (size_t i = 0; i < CORPUS; i++) {
        make(i);
        struct both both = open_both(HEIGHT, WIDTH, corpus[i].channels, corpus[i].values);
        uint8_t right[HEIGHT * WIDTH * 4];
        cr_assert_eq(decode_both(&both, file.at, file.size), STOKER_OK);
        memcpy(right, both.run[0].row, both.run[0].row_bytes);
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            stk_png_rebuild(&changed, &file, pieces[p], p % 2 == 0 ? "prVt" : NULL, "anything", 8);
            stk_png_add_bytes(&changed, "what follows the end", 20);
            cr_assert_eq(decode_both(&both, changed.at, changed.size), STOKER_OK);
            cr_assert_arr_eq(both.run[0].row, right, both.run[0].row_bytes);
        }
        close_both(&both);
    }
}

CleanTest(codec_png_damage, broken_structures_are_refused)
{
    make(0);
    struct both both = open_both(HEIGHT, WIDTH, 1, false);
    stk_png_rebuild(&changed, &file, 0, "PRVt", "critical", 8); /* unknown, and must be known */
    cr_assert_eq(decode_both(&both, changed.at, changed.size), STOKER_ECORRUPT);

    stk_png_rebuild(&changed, &file, 0, "prvt", "of a type that PNG reserves", 8);
    cr_assert_eq(decode_both(&both, changed.at, changed.size), STOKER_EFORMAT);

    stk_png_begin(&changed, HEIGHT, WIDTH, 8, PNG_COLOR_TYPE_GRAY);
    stk_png_add(&changed, "IEND", NULL, 0);
    cr_assert_eq(decode_both(&both, changed.at, changed.size), STOKER_EFORMAT);

    stk_png_begin(&changed, HEIGHT, WIDTH, 8, PNG_COLOR_TYPE_GRAY);
    stk_png_add(&changed, "IDAT", NULL, 0);
    stk_png_add(&changed, "IEND", NULL, 0);
    cr_assert_eq(decode_both(&both, changed.at, changed.size), STOKER_ECORRUPT);

    static const uint8_t wrong[][2] = {
        { 3, 0 }, { 8, 1 }, { 4, 2 }, { 16, 3 }, { 8, 5 }, { 8, 7 }
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        stk_png_begin(&changed, HEIGHT, WIDTH, wrong[i][0], wrong[i][1]);
        cr_assert_eq(decode_both(&both, changed.at, changed.size), STOKER_EFORMAT);
    }
    close_both(&both);
}

/* ---- bombs ---- */

static int decode_changed(struct both *both)
{
    return decode_both(both, changed.at, changed.size);
}

CleanTest(codec_png_damage, huge_dimensions_are_refused_before_memory_is_taken)
{
    struct both both = open_both(HEIGHT, WIDTH, 1, false);
    const uint64_t allocations = stk_fault_allocations();
    stk_png_begin(&changed, INT32_MAX, INT32_MAX, 16, PNG_COLOR_TYPE_RGB_ALPHA);
    stk_png_add(&changed, "IDAT", "x", 1);
    stk_png_add(&changed, "IEND", NULL, 0);
    cr_assert_eq(decode_changed(&both), STOKER_ELIMIT);
    stk_png_begin(&changed, UINT32_MAX, 1, 8, PNG_COLOR_TYPE_GRAY);
    cr_assert_eq(decode_changed(&both), STOKER_EFORMAT);
    stk_png_begin(&changed, 1, 0, 8, PNG_COLOR_TYPE_GRAY);
    cr_assert_eq(decode_changed(&both), STOKER_EFORMAT);
    struct stk_image_shape shape;
    stk_png_begin(&changed, 1U << 20, 1U << 20, 8, PNG_COLOR_TYPE_GRAY);
    cr_assert_eq(stk_codec_png_probe(changed.at, changed.size, NULL, &shape, NULL), STOKER_ELIMIT);
    cr_assert_eq(stk_fault_allocations(), allocations);
    close_both(&both);
}

/* `size` bytes that inflate to a thousand times as many zeros: one block of fixed codes, of which
 * "the 258 bytes one back again" takes 13 bits. */
static size_t make_bomb(uint8_t *out, size_t size)
{
    out[0] = 0x78;
    out[1] = 0xDA;
    uint64_t bits = 0x3 | (uint64_t)0x0C << 3; /* the last block, fixed codes; byte 0 = 00110000 */
    int count = 11;
    size_t at = 2;
    while (at + 8 < size) {
        /* length 258 is code 285 = 11000101, most significant bit first; distance 1 is 00000 */
        bits |= (uint64_t)0xA3 << count;
        count += 13;
        for (; count >= 8; count -= 8, bits >>= 8)
            out[at++] = (uint8_t)bits;
    }
    return at;
}

CleanTest(codec_png_damage, bombs_in_chunks_are_never_unpacked)
{
    static uint8_t bomb[100000];
    memcpy(bomb, "Comment\0\0", 9);
    const size_t size = 9 + make_bomb(bomb + 9, sizeof(bomb) - 9);
    static const char *const types[] = { "zTXt", "iCCP", "iTXt" };
    make(0);
    changed = file;
    struct both both = open_both(HEIGHT, WIDTH, 1, false);
    cr_assert_eq(decode_both(&both, file.at, file.size), STOKER_OK);
    uint8_t right[HEIGHT * WIDTH];
    memcpy(right, both.run[0].row, sizeof(right));
    for (size_t i = 0; i < 3; i++) { /* skipped unread, so the picture is as good as ever */
        stk_png_rebuild(&changed, &file, 0, types[i], bomb, size);
        cr_assert_eq(decode_changed(&both), STOKER_OK);
        cr_assert_arr_eq(both.run[0].row, right, sizeof(right));
    }
    close_both(&both);
}

CleanTest(codec_png_damage, pixels_that_unpack_to_too_many_or_too_few_are_refused)
{
    static uint8_t bomb[100000];
    const size_t size = make_bomb(bomb, sizeof(bomb));
    struct both both = open_both(HEIGHT, WIDTH, 1, false);
    for (size_t bytes = 0; bytes < 64; bytes++) {
        stk_png_begin(&changed, HEIGHT, WIDTH, 8, PNG_COLOR_TYPE_GRAY);
        stk_png_add(&changed, "IDAT", bomb, bytes == 0 ? size : bytes);
        stk_png_add(&changed, "IEND", NULL, 0);
        cr_assert_eq(decode_changed(&both), STOKER_ECORRUPT);
    }
    close_both(&both);
}

CleanTest(codec_png_damage, too_many_and_too_long_chunks_are_refused)
{
    make(0);
    struct both both = open_both(HEIGHT, WIDTH, 1, false);
    stk_png_begin(&changed, HEIGHT, WIDTH, 8, PNG_COLOR_TYPE_GRAY);
    for (int i = 0; i < 1001; i++)
        stk_png_add(&changed, "tIME", NULL, 0);
    cr_assert_eq(decode_changed(&both), STOKER_ELIMIT);
    close_both(&both);

    stoker_codec *codec = NULL;
    const struct stk_image_options strict = {
        .shape = { HEIGHT, WIDTH, 1 }, .limits = { .chunks_max = 3, .chunk_bytes_max = 100 }
    };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &strict), STOKER_OK);
    struct stk_codec_run run = stk_codec_run_open(codec, HEIGHT * WIDTH);
    cr_assert_eq(stk_codec_run(&run, file.at, file.size), STOKER_OK);
    static const uint8_t text[101];
    stk_png_rebuild(&changed, &file, 0, "tEXt", text, 101);
    cr_assert_eq(stk_codec_run(&run, changed.at, changed.size), STOKER_ELIMIT);
    cr_assert_not_null(strstr(run.error.message, "tEXt"));
    stk_png_rebuild(&changed, &file, 0, "tEXt", text, 100);
    cr_assert_eq(stk_codec_run(&run, changed.at, changed.size), STOKER_OK);
    file = changed;
    stk_png_rebuild(&changed, &file, 0, "tEXt", text, 1);
    cr_assert_eq(stk_codec_run(&run, changed.at, changed.size), STOKER_ELIMIT);
    stk_codec_run_close(&run);
    stk_image_codec_destroy(&codec);
}
#else
Test(codec_png_damage, a_build_without_libpng_has_nothing_to_damage)
{
    stoker_codec *codec = NULL;
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png,
                                        &(struct stk_image_options){ .shape = { 1, 1, 1 } }),
                 STOKER_ENOTSUP);
}
#endif
