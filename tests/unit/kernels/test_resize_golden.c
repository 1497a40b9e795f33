/* test_resize_golden.c - resizing gives the bytes that Pillow made, kept in golden/.
 *
 * The contract allows a difference of one level of 255; the test allows none.
 */
#include "golden/resize.h"
#include "support/gpu/planned_transform.h"
#include "support/leaks.h"

enum { CASES = sizeof(golden_resizes) / sizeof(golden_resizes[0]) };

/* As image() in golden/make_resize_golden.py. */
static uint8_t *golden_image(const struct golden_resize *it)
{
    const size_t bytes = (size_t)it->height * it->width * it->channels;
    uint8_t *pixels = malloc(bytes);
    cr_assert_not_null(pixels);
    for (size_t i = 0; i < bytes; i++) {
        const uint64_t state = i * 6364136223846793005U + 1442695040888963407U;
        const size_t y = i / it->channels / it->width, x = i / it->channels % it->width;
        const size_t edge = (x / 8 + y / 8) % 3;
        pixels[i] = (uint8_t)(edge == 0 ? state >> 56 : edge == 1 ? (x * 3 + y * 5) & 255 : 255);
    }
    return pixels;
}

static uint64_t checksum(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0xCBF29CE484222325U;
    for (size_t i = 0; i < count; i++)
        value = (value ^ bytes[i]) * 0x100000001B3U;
    return value;
}

static void check(const struct golden_resize *it, const struct stk_transform_variant *variant)
{
    static struct stk_planned planned;
    struct stk_transform_plan *const plan = &planned.plan;
    const stoker_transform transform = { .resize = { it->to_height, it->to_width } };
    const size_t bytes = (size_t)it->to_height * it->to_width * it->channels;
    const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8,
                                                 .channels = it->channels,
                                                 .scale = 1.0F };
    cr_assert_eq(stk_planned_make(&planned, &transform, 0, it->height, it->width, false, convert),
                 STOKER_OK);
    stk_transform_plan_choose(plan, variant);
    uint8_t *pixels = golden_image(it), *out = malloc(bytes);
    void *scratch = calloc(1, stk_transform_scratch_bytes(plan) + 64);
    cr_assert_not_null(out);
    cr_assert_not_null(scratch);
    const struct stk_image image = { .pixels = pixels, .height = it->height, .width = it->width };
    stk_transform_row(plan, (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63), &image, 0, 0,
                      NULL, out);
    const size_t shown = bytes < sizeof(it->first) ? bytes : sizeof(it->first);
    cr_assert_eq(memcmp(out, it->first, shown), 0, "%s: %u x %u to %u x %u", variant->name,
                 it->height, it->width, it->to_height, it->to_width);
    cr_assert_eq(checksum(out, bytes), it->checksum, "%s: %u x %u to %u x %u", variant->name,
                 it->height, it->width, it->to_height, it->to_width);
    free(pixels);
    free(out);
    free(scratch);
}

CleanTest(resize_golden, gives_the_bytes_of_pillow)
{
    for (size_t i = 0; i < CASES; i++)
        for (const struct stk_transform_variant *v = stk_transform_variants; v->name != NULL; v++)
            if (v->runs_here())
                check(&golden_resizes[i], v);
}
