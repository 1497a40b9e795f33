/* test_region.c - a row made from the part of an image that it needs is the one made from the whole
 * image, and one made from a smaller image is close to it.
 *
 * Method: the cases of transform_cases.h. A part is cut out with some pixels around it, as a codec
 * would, and ends right before an inaccessible page. Scaled images are made by averaging, of
 * pictures whose resized pixels are known.
 */
#include "kernels/transform/transform.h"

#include "support/files/pages.h"
#include "support/gpu/transform_cases.h"
#include "support/gpu/transform_ranges.h"
#include "support/leaks.h"

enum { SAMPLES = 24 };

/* What a codec adds around the wanted pixels: up to `margin` on each side, within the image. */
static struct stk_image cut(struct pages *pages, const uint8_t *pixels, const stoker_region *wanted,
                            const struct transform_case *it, uint32_t channels, uint32_t margin)
{
    const uint32_t y = wanted->y > margin ? wanted->y - margin : 0;
    const uint32_t x = wanted->x > margin ? wanted->x - margin : 0;
    const uint32_t below = it->height - wanted->y - wanted->height;
    const uint32_t beside = it->width - wanted->x - wanted->width;
    struct stk_image part = {
        .whole_height = it->height, .whole_width = it->width, .y = y, .x = x, .eighths = 8
    };
    part.height = wanted->y + wanted->height + (below < margin ? below : margin) - y;
    part.width = wanted->x + wanted->width + (beside < margin ? beside : margin) - x;
    const size_t line = (size_t)part.width * channels;
    uint8_t *at = pages_take(pages, part.height * line);
    for (uint32_t i = 0; i < part.height; i++)
        memcpy(at + i * line, pixels + ((size_t)(y + i) * it->width + x) * channels, line);
    part.pixels = at;
    return part;
}

static bool lies_within(const stoker_region *wanted, const struct transform_case *it)
{
    return wanted->height >= 1 && wanted->width >= 1 && wanted->y < it->height &&
           wanted->x < it->width && wanted->height <= it->height - wanted->y &&
           wanted->width <= it->width - wanted->x && wanted->eighths == 8;
}

struct bench {
    struct pages part, out, expected, scratch;
    uint8_t *pixels;
};

static void *fresh_scratch(struct bench *bench, const struct stk_planned *made)
{
    const size_t bytes = (stk_transform_scratch_bytes(&made->plan) + 63) / 64 * 64;
    void *scratch = pages_take(&bench->scratch, bytes);
    return memset(scratch, 0, bytes);
}

static void check_sample(struct bench *bench, struct stk_planned *made,
                         const struct transform_case *it, uint32_t channels, uint64_t sample)
{
    const size_t bytes = made->convert.to_bytes;
    const struct stk_image whole = { .pixels = bench->pixels,
                                     .height = it->height,
                                     .width = it->width };
    uint8_t *expected = pages_take(&bench->expected, bytes);
    stk_transform_row(&made->plan, fresh_scratch(bench, made), &whole, 3, sample, NULL, expected);
    stoker_region wanted;
    stk_transform_region(&made->plan, it->height, it->width, 3, sample, &wanted);
    cr_assert(lies_within(&wanted, it), "%s", it->name);
    void *scratch = fresh_scratch(bench, made);
    for (uint32_t margin = 0; margin <= 9; margin += 3) {
        const struct stk_image part =
            cut(&bench->part, bench->pixels, &wanted, it, channels, margin);
        uint8_t *out = pages_take(&bench->out, bytes);
        memset(out, 0x5a, bytes);
        stk_transform_row(&made->plan, scratch, &part, 3, sample, NULL, out);
        pages_check(out);
        cr_assert(memcmp(out, expected, bytes) == 0, "%s: %u channels, sample %d, margin %u",
                  it->name, channels, (int)sample, margin);
    }
}

CleanTest(region, a_part_gives_the_row_of_the_whole)
{
    struct bench bench = { pages_open(1 << 18), pages_open(1 << 18), pages_open(1 << 18),
                           pages_open(1 << 20), malloc(1 << 18) };
    cr_assert_not_null(bench.pixels);
    for (size_t i = 0; i < TRANSFORM_CASES; i++)
        for (uint32_t channels = 1; channels <= 4; channels++) {
            const struct transform_case *it = &transform_cases[i];
            struct stk_planned made;
            cr_assert_eq(transform_case_plan(&made, it, 11, channels, STOKER_DTYPE_UINT8,
                                             STOKER_LAYOUT_NHWC, 0),
                         STOKER_OK);
            pages_fill(bench.pixels, (size_t)it->height * it->width * channels, (uint32_t)i);
            for (const struct stk_transform_variant *v = stk_transform_variants; v->name != NULL;
                 v++) {
                if (!v->runs_here())
                    continue;
                stk_transform_plan_choose(&made.plan, v);
                for (uint64_t sample = 0; sample < SAMPLES; sample++)
                    check_sample(&bench, &made, it, channels, sample);
            }
        }
    free(bench.pixels);
    pages_close(&bench.part);
    pages_close(&bench.out);
    pages_close(&bench.expected);
    pages_close(&bench.scratch);
}

/* ---- scaled images ---- */

enum { HEIGHT = 417, WIDTH = 531, OUT = 48 };

/* A slope, curved so that a shift by a part of a pixel is seen, in levels times 256. */
static uint32_t slope(double y, double x)
{
    return (uint32_t)(256.0 * (20.0 + 0.2 * y + 0.24 * x + 0.00006 * (x - 200.0) * (x - 200.0)));
}

/* The picture at eighths / 8: the mean over what each pixel covers. */
static void paint(uint8_t *pixels, uint32_t height, uint32_t width, uint32_t eighths)
{
    const double scale = 8.0 / eighths;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            pixels[y * width + x] =
                (uint8_t)((slope((y + 0.5) * scale, (x + 0.5) * scale) + 128) / 256);
}

/* The part of the scaled picture that decode() must cover, and nothing more. */
static struct stk_image scaled_part(uint8_t *memory, const uint8_t *scaled, uint32_t scaled_width,
                                    const stoker_region *wanted, uint32_t eighths)
{
    struct stk_image part = { .pixels = memory,
                              .whole_height = HEIGHT,
                              .whole_width = WIDTH,
                              .y = wanted->y * eighths / 8,
                              .x = wanted->x * eighths / 8,
                              .eighths = eighths };
    part.height = ((wanted->y + wanted->height) * eighths + 7) / 8 - part.y;
    part.width = ((wanted->x + wanted->width) * eighths + 7) / 8 - part.x;
    for (uint32_t i = 0; i < part.height; i++)
        memcpy(memory + (size_t)i * part.width,
               scaled + (size_t)(part.y + i) * scaled_width + part.x, part.width);
    return part;
}

static uint32_t largest_difference(const uint8_t *one, const uint8_t *other, size_t bytes)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t difference = (uint32_t)abs(one[i] - other[i]);
        largest = difference > largest ? difference : largest;
    }
    return largest;
}

/* With every scale that is allowed, the row is the reference's, and differs by at most a level from
 * the exact one, but at the edges of the image, which weigh other pixels, by two. A shift by half a
 * pixel would be four levels. */
static void check_scaled(const stoker_transform *transform)
{
    struct stk_planned made;
    const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8,
                                                 .layout = STOKER_LAYOUT_NHWC,
                                                 .channels = 1 };
    cr_assert_eq(stk_planned_make(&made, transform, 5, HEIGHT, WIDTH, false, convert), STOKER_OK,
                 "%s", made.why);
    uint8_t *pixels[9] = { NULL };
    for (uint32_t e = 1; e <= 8; e++) {
        pixels[e] = malloc((size_t)HEIGHT * WIDTH);
        cr_assert_not_null(pixels[e]);
        paint(pixels[e], (HEIGHT * e + 7) / 8, (WIDTH * e + 7) / 8, e);
    }
    uint8_t *memory = malloc((size_t)HEIGHT * WIDTH + STK_IMAGE_SLACK_BYTES);
    void *scratch = calloc(1, stk_transform_scratch_bytes(&made.plan) + 64);
    uint8_t *expected = malloc(made.convert.to_bytes), *out = malloc(made.convert.to_bytes);
    cr_assert(memory != NULL && scratch != NULL && expected != NULL && out != NULL);
    void *aligned = (uint8_t *)scratch + (64 - (uintptr_t)scratch % 64) % 64;
    const struct stk_image whole = { .pixels = pixels[8], .height = HEIGHT, .width = WIDTH };
    uint32_t smaller = 0;
    for (uint64_t sample = 0; sample < 64; sample++) {
        stoker_region wanted;
        stk_transform_region(&made.plan, HEIGHT, WIDTH, 1, sample, &wanted);
        stk_transform_row(&made.plan, aligned, &whole, 1, sample, NULL, expected);
        smaller += wanted.eighths < 8;
        for (uint32_t e = wanted.eighths; e <= 8; e++) {
            const struct stk_image part =
                scaled_part(memory, pixels[e], (WIDTH * e + 7) / 8, &wanted, e);
            stk_transform_row(&made.plan, aligned, &part, 1, sample, NULL, out);
            uint8_t *same = malloc(made.convert.to_bytes);
            cr_assert_not_null(same);
            cr_assert(stk_transform_row_reference(&made.plan, &part, 1, sample, same));
            cr_assert(memcmp(out, same, made.convert.to_bytes) == 0);
            free(same);
            const uint32_t most = largest_difference(out, expected, made.convert.to_bytes);
            cr_assert_leq(most, 2, "sample %d, %u eighths: %u levels", (int)sample, e, most);
        }
    }
    cr_assert_geq(smaller, 32);
    for (uint32_t e = 1; e <= 8; e++)
        free(pixels[e]);
    free(memory);
    free(scratch);
    free(expected);
    free(out);
}

CleanTest(region, a_smaller_image_gives_nearly_the_same_row)
{
    static const stoker_transform transforms[] = {
        { .random_resized_crop = { OUT, OUT },
          STK_USUAL_AREA,
          STK_USUAL_RATIO,
          .decode_scale = STOKER_DECODE_SCALE_FAST },
        { .resize = { OUT, OUT + 20 },
          .random_crop = { OUT - 8, OUT },
          .flip = true,
          .decode_scale = STOKER_DECODE_SCALE_FAST },
        { .resize = { OUT, 3 * OUT }, .decode_scale = STOKER_DECODE_SCALE_FAST },
        { .resize_shorter = OUT + 9,
          .center_crop = { OUT, OUT },
          .decode_scale = STOKER_DECODE_SCALE_FAST },
        { .resize_shorter = OUT,
          .random_crop = { OUT, OUT },
          .decode_scale = STOKER_DECODE_SCALE_FAST },
    };
    for (size_t i = 0; i < sizeof(transforms) / sizeof(transforms[0]); i++)
        check_scaled(&transforms[i]);
}

/* The smallest scale at which no side falls below the grid, and none without FAST or for an image
 * that grows. */
CleanTest(region, the_scale_keeps_every_side_as_large_as_the_grid)
{
    static const struct {
        uint32_t height, width;
        stoker_size resize;
        stoker_decode_scale decode_scale;
        uint32_t eighths;
    } cases[] = {
        { 800, 800, { 100, 100 }, STOKER_DECODE_SCALE_FAST, 1 },
        { 799, 800, { 100, 100 }, STOKER_DECODE_SCALE_FAST, 2 },
        { 800, 800, { 101, 100 }, STOKER_DECODE_SCALE_FAST, 2 },
        { 800, 800, { 100, 400 }, STOKER_DECODE_SCALE_FAST, 4 },
        { 800, 800, { 100, 401 }, STOKER_DECODE_SCALE_FAST, 5 },
        { 800, 800, { 100, 800 }, STOKER_DECODE_SCALE_FAST, 8 },
        { 800, 800, { 1600, 100 }, STOKER_DECODE_SCALE_FAST, 8 },
        { 8000, 8000, { 1, 1 }, STOKER_DECODE_SCALE_FAST, 1 },
        { 800, 800, { 100, 100 }, STOKER_DECODE_SCALE_EXACT, 8 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_planned made;
        const stoker_transform transform = { .resize = cases[i].resize,
                                             .decode_scale = cases[i].decode_scale };
        const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8, .channels = 3 };
        cr_assert_eq(
            stk_planned_make(&made, &transform, 5, cases[i].height, cases[i].width, false, convert),
            STOKER_OK);
        stoker_region drawn, resized;
        stk_transform_region(&made.plan, cases[i].height, cases[i].width, 0, 0, &drawn);
        stk_transform_resize_region(&made.plan, cases[i].height, cases[i].width, &resized);
        cr_assert_eq(drawn.eighths, cases[i].eighths, "%zu: %u", i, drawn.eighths);
        cr_assert_eq(memcmp(&drawn, &resized, sizeof(drawn)), 0);
    }
}

CleanTest(region, an_unknown_scale_is_refused)
{
    struct stk_planned made;
    stoker_transform transform = { .resize = { 10, 10 } };
    const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8, .channels = 3 };
    transform.decode_scale = (stoker_decode_scale)2;
    cr_assert_eq(stk_planned_make(&made, &transform, 5, 20, 20, false, convert), STOKER_EINVAL);
    cr_assert_not_null(strstr(made.why, "decode_scale"));
}
