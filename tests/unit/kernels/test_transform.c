/* test_transform.c - every variant gives the bits of the reference and stays in its memory.
 *
 * Method: the cases of transform_cases.h with 1 to 4 channels, each type and layout, some samples
 * and epochs, on each variant that this CPU can run. Image, row and scratch end right before an
 * inaccessible page.
 */
#include "kernels/transform/transform.h"

#include "support/files/pages.h"
#include "support/gpu/transform_cases.h"
#include "support/leaks.h"

/* AddressSanitizer takes ten times as long, and sees little that the pages behind each array do
 * not. */
#ifdef STK_TEST_ASAN
enum { SAMPLES = 3, WIDTHS_APART = 3 };
#else
enum { SAMPLES = 6, WIDTHS_APART = 1 };
#endif

struct arena {
    struct pages picture, out, expected, scratch;
};

static void arena_open(struct arena *arena)
{
    arena->picture = pages_open(1 << 18);
    arena->out = pages_open(1 << 18);
    arena->expected = pages_open(1 << 18);
    arena->scratch = pages_open(1 << 20);
}

static void arena_close(struct arena *arena)
{
    pages_close(&arena->picture);
    pages_close(&arena->out);
    pages_close(&arena->expected);
    pages_close(&arena->scratch);
}

static void check_variant(const struct stk_transform_variant *variant, struct arena *arena,
                          struct stk_planned *made, const struct stk_image *picture,
                          uint64_t sample, const struct transform_case *it)
{
    const size_t bytes = made->convert.to_bytes;
    const size_t scratch_bytes = (stk_transform_scratch_bytes(&made->plan) + 63) / 64 * 64;
    unsigned char *out = pages_take(&arena->out, bytes);
    unsigned char *scratch = pages_take(&arena->scratch, scratch_bytes);
    memset(scratch, 0, scratch_bytes);
    stk_transform_plan_choose(&made->plan, variant);
    for (int time = 0; time < 2; time++) { /* with a fresh scratch, then a used one */
        memset(out, 0x5a, bytes);
        stk_transform_row(&made->plan, scratch, picture, 3, sample, time == 0 ? NULL : picture,
                          out);
        pages_check(out);
        pages_check(scratch);
        const unsigned char *expected = arena->expected.end - bytes;
        for (size_t i = 0; i < bytes; i++)
            cr_assert_eq(
                out[i], expected[i],
                "%s, %s: %u channels, type %d, layout %d, sample %d: byte %zu is %u, not %u",
                it->name, variant->name, made->plan.channels, (int)made->convert.to,
                (int)made->convert.layout, (int)sample, i, out[i], expected[i]);
    }
}

static void check_case(struct arena *arena, const struct transform_case *it, uint32_t channels,
                       stoker_dtype to, stoker_layout layout, uint32_t mean_count)
{
    struct stk_planned made;
    cr_assert_eq(transform_case_plan(&made, it, 11, channels, to, layout, mean_count), STOKER_OK,
                 "%s: %s", it->name, made.why);
    const size_t picture_bytes = (size_t)it->height * it->width * channels;
    unsigned char *pixels = pages_take(&arena->picture, picture_bytes);
    pages_fill(pixels, picture_bytes, it->height + channels);
    const struct stk_image picture = { .pixels = pixels, .height = it->height, .width = it->width };
    unsigned char *expected = pages_take(&arena->expected, made.convert.to_bytes);
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        cr_assert(stk_transform_row_reference(&made.plan, &picture, 3, sample, expected));
        for (const struct stk_transform_variant *v = stk_transform_variants; v->name != NULL; v++)
            if (v->runs_here())
                check_variant(v, arena, &made, &picture, sample, it);
    }
}

static void check_type(stoker_dtype to)
{
    struct arena arena;
    arena_open(&arena);
    for (size_t i = 0; i < TRANSFORM_CASES; i++) {
        for (uint32_t channels = 1; channels <= 4; channels++) {
            const uint32_t mean_count = to == STOKER_DTYPE_UINT8 ? 0
                                        : i % 2 == 0             ? channels
                                                                 : i % 3 == 0;
            check_case(&arena, &transform_cases[i], channels, to, STOKER_LAYOUT_NHWC, mean_count);
            check_case(&arena, &transform_cases[i], channels, to, STOKER_LAYOUT_NCHW, mean_count);
        }
    }
    arena_close(&arena);
    stk_test_check_leaks();
}

Test(transform, every_case_matches_the_reference_as_float32)
{
    check_type(STOKER_DTYPE_FLOAT32);
}

Test(transform, every_case_matches_the_reference_as_float16)
{
    check_type(STOKER_DTYPE_FLOAT16);
}

Test(transform, every_case_matches_the_reference_as_bfloat16)
{
    check_type(STOKER_DTYPE_BFLOAT16);
}

Test(transform, every_case_matches_the_reference_as_stored)
{
    check_type(STOKER_DTYPE_UINT8);
}

/* Checks one position of the output in an image that ends right before a page, on each variant: all
 * must equal the last one, which is plain C. */
static void check_place(struct arena *arena, struct stk_planned *made, const struct stk_crop *crop)
{
    const size_t bytes = made->convert.to_bytes;
    unsigned char *expected = pages_take(&arena->expected, bytes);
    const struct stk_transform_variant *plain = stk_transform_variants;
    while (plain[1].name != NULL)
        plain++;
    stk_transform_plan_choose(&made->plan, plain);
    made->plan.crop(&made->plan, crop, expected);
    for (const struct stk_transform_variant *v = stk_transform_variants; v != plain; v++) {
        if (!v->runs_here())
            continue;
        unsigned char *out = pages_take(&arena->out, bytes);
        memset(out, 0x5a, bytes);
        stk_transform_plan_choose(&made->plan, v);
        made->plan.crop(&made->plan, crop, out);
        pages_check(out);
        cr_assert_eq(memcmp(out, expected, bytes), 0,
                     "%s: %u x %u at %d, %d of a picture %d wide, %s, type %d, %u channels",
                     v->name, made->plan.framing.out_height, made->plan.framing.out_width, crop->y,
                     crop->x, crop->width, crop->flip ? "turned" : "straight",
                     (int)made->convert.to, made->plan.channels);
    }
}

/* Checks an output of height x width everywhere in an image and up to ten pixels outside. */
static void check_places(struct arena *arena, uint32_t height, uint32_t width,
                         uint32_t picture_width, uint32_t channels, stoker_dtype to)
{
    enum { LINES = 4, BESIDE = 10 };
    const struct transform_case it = {
        "places",
        LINES,
        picture_width,
        { .random_crop = { height, width }, .pad = 40, .fill = { 200, 9, 30, 77 } }
    };
    struct stk_planned made;
    cr_assert_eq(transform_case_plan(&made, &it, 11, channels, to, STOKER_LAYOUT_NCHW,
                                     to == STOKER_DTYPE_UINT8 ? 0 : channels),
                 STOKER_OK, "%s", made.why);
    const size_t stride = (size_t)picture_width * channels;
    unsigned char *pixels = pages_take(&arena->picture, LINES * stride);
    pages_fill(pixels, LINES * stride, width + channels);
    struct stk_crop crop = {
        .pixels = pixels, .stride_bytes = stride, .height = LINES, .width = (int32_t)picture_width
    };
    const int32_t last = (int32_t)picture_width - (int32_t)width + BESIDE;
    for (crop.x = -BESIDE; crop.x <= last; crop.x++)
        for (crop.y = -1; crop.y <= LINES - (int32_t)height + 1; crop.y++)
            for (int turns = 0; turns < 2; turns++) {
                crop.flip = turns != 0;
                crop.cut_bottom = crop.x % 3 == 0 ? 1 : 0; /* else no cut */
                crop.cut_right = (int32_t)width / 2;
                check_place(arena, &made, &crop);
            }
}

static void check_all_places(stoker_dtype to)
{
    static const uint32_t beside[] = { 0, 1, 7 };
    struct arena arena;
    arena_open(&arena);
    for (uint32_t width = 1; width <= 40; width += WIDTHS_APART)
        for (uint32_t height = 1; height <= 4; height += width == 28 ? 1 : 3)
            for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
                check_places(&arena, height, width, width + beside[i], 1, to);
                if (width > beside[i])
                    check_places(&arena, height, width, width - beside[i], 1, to);
                if (width % 4 == 0)
                    check_places(&arena, height, width, width, 3, to);
            }
    for (uint32_t width = 62; width <= 84; width += 3) /* narrow, then wide */
        for (uint32_t channels = 1; channels <= STOKER_TRANSFORM_CHANNELS_MAX; channels++)
            check_places(&arena, 2, width, width + 5 - channels, channels, to);
    check_places(&arena, 2, 28, 300, 1, to);
    arena_close(&arena);
}

Test(transform, lines_anywhere_as_float32)
{
    check_all_places(STOKER_DTYPE_FLOAT32);
}

Test(transform, lines_anywhere_as_float16)
{
    check_all_places(STOKER_DTYPE_FLOAT16);
}

Test(transform, lines_anywhere_as_bfloat16)
{
    check_all_places(STOKER_DTYPE_BFLOAT16);
}

Test(transform, lines_anywhere_as_stored)
{
    check_all_places(STOKER_DTYPE_UINT8);
}

/* Fewer and more rows than are drawn at a time; odd counts too. */
Test(transform, rows_at_once_are_the_rows_one_by_one)
{
    enum { ROWS = 39, AHEAD = 3, SIDE = 28, BYTES = SIDE * SIDE };
    static const struct transform_case it = {
        "digits", SIDE, SIDE, { .random_crop = { SIDE, SIDE }, .pad = 2, .flip = true, .cutout = 9 }
    };
    static uint8_t pictures[ROWS + AHEAD][BYTES];
    static float at_once[ROWS][BYTES], alone[BYTES];
    const void *sources[ROWS + AHEAD];
    uint64_t samples[ROWS];
    struct stk_planned made;
    cr_assert_eq(
        transform_case_plan(&made, &it, 11, 1, STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC, 1),
        STOKER_OK, "%s", made.why);
    pages_fill(pictures[0], sizeof(pictures), 5);
    for (uint32_t k = 0; k < ROWS + AHEAD; k++)
        sources[k] = pictures[k];
    for (uint32_t k = 0; k < ROWS; k++)
        samples[k] = UINT64_C(0x123456789) * k;
    _Alignas(64) unsigned char scratch[1 << 14] = { 0 };
    cr_assert_leq(stk_transform_scratch_bytes(&made.plan), sizeof(scratch));
    for (uint32_t turn = 0; turn < 3 * STK_TRANSFORM_VARIANTS_MAX; turn++) {
        const struct stk_transform_variant *variant = &stk_transform_variants[turn / 3];
        const uint32_t count = 1 + turn % 3 * 19;
        if (variant->name == NULL || !variant->runs_here())
            continue;
        stk_transform_plan_choose(&made.plan, variant);
        memset(at_once, 0, sizeof(at_once));
        stk_transform_rows(&made.plan, scratch, sources, SIDE, SIDE, count, AHEAD, 7, samples,
                           at_once);
        for (uint32_t k = 0; k < count; k++) {
            const struct stk_image picture = { .pixels = pictures[k],
                                               .height = SIDE,
                                               .width = SIDE };
            stk_transform_row(&made.plan, scratch, &picture, 7, samples[k], NULL, alone);
            cr_assert_arr_eq(at_once[k], alone, sizeof(alone), "row %u of %u", k, count);
        }
        for (size_t i = 0; count < ROWS && i < BYTES; i++)
            cr_assert_eq(at_once[count][i], 0.0F);
    }
}

/* int(round(room / 2.0)) of Python, which torchvision's CenterCrop begins at. */
Test(transform, a_center_crop_begins_where_torchvisions_does)
{
    static const struct {
        uint32_t side, crop, first;
    } cases[] = {
        { 8, 8, 0 },  { 9, 8, 0 },      { 28, 27, 0 },    { 10, 8, 1 },     { 5, 2, 2 },
        { 7, 4, 2 },  { 28, 25, 2 },    { 32, 29, 2 },    { 32, 28, 2 },    { 7, 2, 2 },
        { 8, 2, 3 },  { 9, 2, 4 },      { 256, 224, 16 }, { 340, 224, 58 }, { 341, 224, 58 },
        { 11, 2, 4 }, { 343, 224, 60 }, { 345, 224, 60 },
    };
    uint8_t pixels[345], out[224], first;
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)i;
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const uint32_t side = cases[i / 2].side, crop = cases[i / 2].crop;
        const bool tall = i % 2 == 0; /* one column, or one line */
        const struct transform_case it = { "center",
                                           tall ? side : 1,
                                           tall ? 1 : side,
                                           { .center_crop = { tall ? crop : 1,
                                                              tall ? 1 : crop } } };
        const struct stk_image image = { .pixels = pixels, .height = it.height, .width = it.width };
        struct stk_planned made;
        cr_assert_eq(
            transform_case_plan(&made, &it, 11, 1, STOKER_DTYPE_UINT8, STOKER_LAYOUT_NHWC, 0),
            STOKER_OK, "%s", made.why);
        cr_assert(stk_transform_row_reference(&made.plan, &image, 0, 0, out));
        first = (uint8_t)cases[i / 2].first;
        cr_assert_eq(out[0], first, "%u of %u: %u, not %u", crop, side, out[0], first);
        cr_assert_eq(out[crop - 1], (uint8_t)(first + crop - 1));
    }
}
