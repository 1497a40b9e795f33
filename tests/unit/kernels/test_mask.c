/* test_mask.c - a mask follows its image: if nothing is resampled, the image's own bytes show it,
 * else the coordinates that a mask holds, against the geometry in doubles.
 *
 * Method: the cases of transform_cases.h. Mask, row and scratch end right before an inaccessible
 * page.
 */
#include "kernels/transform/mask/mask.h"

#include "support/files/pages.h"
#include "support/gpu/transform_cases.h"
#include "support/leaks.h"

enum { SAMPLES = 6, EPOCH = 3 };

static const uint8_t fill[STK_MASK_PIXEL_BYTES_MAX] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 };

struct arena {
    struct pages mask, out, expected, scratch;
};

static void arena_open(struct arena *arena)
{
    arena->mask = pages_open(1 << 20);
    arena->out = pages_open(1 << 20);
    arena->expected = pages_open(1 << 20);
    arena->scratch = pages_open(1 << 18);
}

static void arena_close(struct arena *arena)
{
    pages_close(&arena->mask);
    pages_close(&arena->out);
    pages_close(&arena->expected);
    pages_close(&arena->scratch);
}

static struct stk_mask_plan plan_of(const struct transform_case *it, uint32_t pixel_bytes)
{
    struct stk_framing framing;
    struct stk_mask_plan plan;
    char why[STK_TRANSFORM_WHY_BYTES];
    cr_assert_eq(stk_framing_init(&framing, &it->transform, 11, it->height, it->width, false, why),
                 STOKER_OK, "%s", why);
    cr_assert_eq(stk_mask_plan_init(&plan, &framing, pixel_bytes, fill), STOKER_OK);
    return plan;
}

/* Makes the mask of a sample; it lies in the arena until the next one. */
static const unsigned char *make(struct arena *arena, const struct stk_mask_plan *plan,
                                 const struct stk_image *mask, uint64_t sample)
{
    unsigned char *out = pages_take(&arena->out, stk_mask_bytes(plan));
    unsigned char *scratch = pages_take(&arena->scratch, stk_mask_scratch_bytes(plan));
    memset(scratch, 0x5a, stk_mask_scratch_bytes(plan));
    stk_mask_row(plan, scratch, mask, EPOCH, sample, out);
    pages_check(out);
    pages_check(scratch);
    return out;
}

CleanTest(mask, every_case_matches_the_reference)
{
    static const uint32_t pixel_bytes[] = { 1, 2, 3, 4, 8, STK_MASK_PIXEL_BYTES_MAX };
    struct arena arena;
    arena_open(&arena);
    for (size_t i = 0; i < TRANSFORM_CASES; i++)
        for (size_t k = 0; k < sizeof(pixel_bytes) / sizeof(pixel_bytes[0]); k++) {
            const struct transform_case *it = &transform_cases[i];
            const struct stk_mask_plan plan = plan_of(it, pixel_bytes[k]);
            const size_t bytes = (size_t)it->height * it->width * pixel_bytes[k];
            unsigned char *pixels = pages_take(&arena.mask, bytes);
            unsigned char *expected = pages_take(&arena.expected, stk_mask_bytes(&plan));
            pages_fill(pixels, bytes, it->width);
            const struct stk_image mask = { .pixels = pixels,
                                            .height = it->height,
                                            .width = it->width };
            for (uint64_t sample = 0; sample < SAMPLES; sample++) {
                stk_mask_row_reference(&plan, &mask, EPOCH, sample, expected);
                cr_assert_eq(
                    memcmp(make(&arena, &plan, &mask, sample), expected, stk_mask_bytes(&plan)), 0,
                    "%s, %u bytes", it->name, pixel_bytes[k]);
            }
        }
    arena_close(&arena);
}

static bool moves_whole_pixels(const stoker_transform *transform)
{
    return !stk_transform_resizes(transform) && transform->rotate_min == 0.0F &&
           transform->rotate_max == 0.0F && transform->brightness == 0.0F &&
           transform->contrast == 0.0F && transform->saturation == 0.0F && transform->hue == 0.0F &&
           transform->blur == 0;
}

/* A mask of four bytes is an image of four channels. */
CleanTest(mask, without_resampling_it_moves_as_its_image_does)
{
    struct arena arena;
    uint32_t compared = 0;
    arena_open(&arena);
    for (size_t i = 0; i < TRANSFORM_CASES; i++) {
        struct transform_case it = transform_cases[i];
        if (!moves_whole_pixels(&it.transform))
            continue;
        static struct stk_planned image;
        memcpy(it.transform.fill, fill, 4);
        cr_assert_eq(
            transform_case_plan(&image, &it, 11, 4, STOKER_DTYPE_UINT8, STOKER_LAYOUT_NHWC, 0),
            STOKER_OK);
        const struct stk_mask_plan plan = plan_of(&it, 4);
        const size_t bytes = (size_t)it.height * it.width * 4;
        unsigned char *pixels = pages_take(&arena.mask, bytes);
        unsigned char *expected = pages_take(&arena.expected, stk_mask_bytes(&plan));
        pages_fill(pixels, bytes, it.height);
        const struct stk_image picture = { .pixels = pixels,
                                           .height = it.height,
                                           .width = it.width };
        for (uint64_t sample = 0; sample < SAMPLES; sample++) {
            cr_assert(stk_transform_row_reference(&image.plan, &picture, EPOCH, sample, expected));
            cr_assert_eq(
                memcmp(make(&arena, &plan, &picture, sample), expected, stk_mask_bytes(&plan)), 0,
                "%s", it.name);
        }
        compared++;
    }
    cr_assert_gt(compared, 10);
    arena_close(&arena);
}

/* ---- coordinates ------------------------------------------------------------------ */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Distance of a pixel's center from where the geometry puts the output's pixel, in source pixels;
 * -1 = outside. */
static double distance(const struct stk_framing *framing, const struct stk_frame *frame, double y,
                       double x, uint32_t found_y, uint32_t found_x)
{
    const double flipped = frame->flip != 0 ? framing->out_width - 1.0 - x : x;
    const double down = (double)frame->height / frame->grid_height;
    const double across = (double)frame->width / frame->grid_width;
    const double grid_y = frame->y + y + 0.5, grid_x = frame->x + flipped + 0.5;
    if (grid_y < 0.0 || grid_x < 0.0 || grid_y > frame->grid_height || grid_x > frame->grid_width)
        return -1.0;
    const double away_y = frame->top + grid_y * down - (found_y + 0.5);
    const double away_x = frame->left + grid_x * across - (found_x + 0.5);
    return larger(larger(away_y, -away_y), larger(away_x, -away_x));
}

/* Undoes the rotation: where the output's pixel lies in the cropped image. */
static void unturn(const struct stk_framing *framing, double degrees, double *y, double *x)
{
    const double angle = degrees * 3.14159265358979323846 / 180.0;
    const double middle_y = (framing->out_height - 1.0) / 2.0;
    const double middle_x = (framing->out_width - 1.0) / 2.0;
    const double down = *y - middle_y, right = *x - middle_x;
    *y = middle_y + sin(angle) * right + cos(angle) * down;
    *x = middle_x + cos(angle) * right - sin(angle) * down;
}

static void check_coordinates(const struct transform_case *it, const struct stk_mask_plan *plan,
                              const unsigned char *out, uint64_t sample)
{
    const struct stk_framing *framing = &plan->framing;
    struct stk_frame frame;
    stk_frame_draw(framing, it->height, it->width, EPOCH, sample, &frame);
    const double degrees = stk_retouch_angle(&framing->retouch, EPOCH, sample);
    /* Two steps to the nearest pixel: half a pixel of the cropped image becomes up to half a step
     * of the grid more. */
    const double step =
        larger((double)frame.height / frame.grid_height, (double)frame.width / frame.grid_width);
    const double most = (framing->retouch.rotates != 0 ? 0.5 + 0.5 * step : 0.5) + 1e-4;
    for (uint32_t i = 0; i < framing->out_height * framing->out_width; i++, out += 8) {
        uint32_t found[2];
        double y = i / framing->out_width, x = i % framing->out_width;
        memcpy(found, out, sizeof(found));
        const bool filled = memcmp(out, fill, 8) == 0;
        const bool cut = stk_mask_is_cut(&frame, (uint32_t)y, (uint32_t)x) != 0;
        cr_assert(filled || !cut, "%s: the cutout is not filled", it->name);
        unturn(framing, degrees, &y, &x);
        const double away = distance(framing, &frame, y, x, found[0], found[1]);
        if (!filled)
            cr_assert(away <= most && (away >= 0.0 || framing->retouch.rotates != 0),
                      "%s: pixel %u shows %u, %u", it->name, i, found[0], found[1]);
        else if (!cut && framing->retouch.rotates == 0)
            cr_assert_lt(away, 0.0, "%s: pixel %u is filled", it->name, i);
    }
}

CleanTest(mask, coordinates_are_the_nearest_of_the_geometry)
{
    struct arena arena;
    arena_open(&arena);
    for (size_t i = 0; i < TRANSFORM_CASES; i++) {
        const struct transform_case *it = &transform_cases[i];
        const struct stk_mask_plan plan = plan_of(it, 8);
        unsigned char *pixels = pages_take(&arena.mask, (size_t)it->height * it->width * 8);
        for (uint32_t y = 0; y < it->height; y++)
            for (uint32_t x = 0; x < it->width; x++) {
                const uint32_t place[2] = { y, x };
                memcpy(pixels + ((size_t)y * it->width + x) * 8, place, 8);
            }
        const struct stk_image mask = { .pixels = pixels,
                                        .height = it->height,
                                        .width = it->width };
        for (uint64_t sample = 0; sample < SAMPLES; sample++)
            check_coordinates(it, &plan, make(&arena, &plan, &mask, sample), sample);
    }
    arena_close(&arena);
}

Test(mask, pixels_that_are_too_large_are_refused)
{
    struct stk_mask_plan plan;
    const struct stk_framing framing = { .out_height = 1, .out_width = 1 };
    cr_assert_eq(stk_mask_plan_init(&plan, &framing, 0, fill), STOKER_ELIMIT);
    cr_assert_eq(stk_mask_plan_init(&plan, &framing, STK_MASK_PIXEL_BYTES_MAX + 1, fill),
                 STOKER_ELIMIT);
}
