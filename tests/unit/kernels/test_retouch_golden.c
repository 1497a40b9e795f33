/* test_retouch_golden.c - colors give the bytes of torchvision 0.29, without torchvision; rotation
 * and blur give the bytes that were within one level of it.
 *
 * The checksums of the colors are those of torchvision's own results for the drawn order and
 * factors (checks/check_retouch_torch.py repeats the comparison on random images); so every step's
 * arithmetic is held.
 */
#include "support/gpu/planned_transform.h"
#include "support/leaks.h"

enum { HEIGHT = 19, WIDTH = 23, BYTES_MAX = HEIGHT * WIDTH * 3 };

struct golden {
    const char *name;
    stoker_transform transform;
    uint64_t gray, color; /* checksums with 1 and 3 channels */
};

static const struct golden goldens[] = {
    { "brightness", { .brightness = 0.5F }, 0x4B81A65433C03647U, 0xCE21034794EB04E4U },
    { "contrast", { .contrast = 0.75F }, 0xDF937C3FEE2704C6U, 0x7DCA50C2DD8E9915U },
    { "saturation", { .saturation = 2 }, 0x8D1932875F1419A8U, 0xBB6569F7E781E798U },
    { "hue", { .hue = 0.5F }, 0x8D1932875F1419A8U, 0x603B5B410B266D6DU },
    { "all colors",
      { .brightness = 0.5F, .contrast = 0.5F, .saturation = 0.5F, .hue = 0.25F },
      0x9160CC9C39FCDD06U,
      0x99F2EFA57B039F51U },
    { "rotation",
      { .rotate_min = 33.5F, .rotate_max = 33.5F },
      0xCCAA656E92B4B376U,
      0xE12E5F4A5B986B0FU },
    { "blur",
      { .blur = 9, .sigma_min = 1.5F, .sigma_max = 1.5F },
      0x83C972F7E7367AB9U,
      0x59FA776764E6C18EU },
};

static uint64_t checksum(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0xCBF29CE484222325U;
    for (size_t i = 0; i < count; i++)
        value = (value ^ bytes[i]) * 0x100000001B3U;
    return value;
}

static void check(const struct golden *it, uint32_t channels,
                  const struct stk_transform_variant *variant)
{
    static uint8_t pixels[BYTES_MAX], out[BYTES_MAX];
    static _Alignas(64) unsigned char scratch[1 << 17];
    static struct stk_planned planned;
    const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8,
                                                 .channels = channels,
                                                 .scale = 1.0F };
    const size_t bytes = (size_t)HEIGHT * WIDTH * channels;
    cr_assert_eq(stk_planned_make(&planned, &it->transform, 3, HEIGHT, WIDTH, false, convert),
                 STOKER_OK);
    cr_assert_leq(stk_transform_scratch_bytes(&planned.plan), sizeof(scratch));
    stk_transform_plan_choose(&planned.plan, variant);
    memset(scratch, 0, sizeof(scratch));
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (uint8_t)((i * 6364136223846793005U + 1442695040888963407U) >> 56);
    const struct stk_image image = { .pixels = pixels, .height = HEIGHT, .width = WIDTH };
    stk_transform_row(&planned.plan, scratch, &image, 0, 5, NULL, out);
    cr_assert_eq(checksum(out, bytes), channels == 1 ? it->gray : it->color, "%s: %s, %u channels",
                 variant->name, it->name, channels);
}

CleanTest(retouch, colors_are_torchvisions_to_the_byte)
{
    for (const struct stk_transform_variant *v = stk_transform_variants; v->name != NULL; v++)
        for (size_t i = 0; v->runs_here() && i < sizeof(goldens) / sizeof(goldens[0]); i++) {
            check(&goldens[i], 1, v);
            check(&goldens[i], 3, v);
        }
}

/* Each order comes about as often as every other, and is an order. */
CleanTest(retouch, the_orders_of_color_steps_are_all_drawn)
{
    enum { DRAWS = 24000 };
    uint32_t seen[256] = { 0 }, orders = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint8_t order[STK_COLOR_STEPS];
        uint32_t steps = 0, code = 0;
        stk_retouch_order((uint32_t)(stk_mix64(i) >> 32), order);
        for (uint32_t k = 0; k < STK_COLOR_STEPS; k++) {
            steps |= 1U << order[k];
            code = code * 4 + order[k];
        }
        cr_assert_eq(steps, 15);
        seen[code]++;
    }
    for (uint32_t code = 0; code < 256; code++) {
        orders += seen[code] > 0;
        cr_assert(seen[code] == 0 || (seen[code] > 850 && seen[code] < 1150), "%u", seen[code]);
    }
    cr_assert_eq(orders, 24);
}

CleanTest(retouch, a_quarter_turn_moves_pixels_unchanged)
{
    struct stk_retouch turn;
    static const int64_t one = INT64_C(1) << 32;
    static const int64_t expected[][3] = { { -360, one, 0 }, { -90, 0, -one }, { 0, one, 0 },
                                           { 90, 0, one },   { 180, -one, 0 }, { 270, 0, -one } };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        stk_retouch_turn((double)expected[i][0], &turn);
        cr_assert_eq(turn.cosine, expected[i][1]);
        cr_assert_eq(turn.sine, expected[i][2]);
    }
}

/* The quotient in integers is that of doubles, rounded to a float. */
CleanTest(retouch, the_average_gray_is_the_quotient_rounded_to_a_float)
{
    enum { DRAWS = 400000 };
    static const uint64_t most = UINT64_C(1) << 28; /* pixels */
    cr_assert_eq(stk_color_mean(0, 7), 0.0F);
    cr_assert_eq(stk_color_mean(255 * most, most), 255.0F);
    for (uint64_t i = 0; i < DRAWS; i++) {
        const struct stk_random draw = stk_philox(11, 0, i);
        /* All magnitudes; and quotients in 128..255 next to the middle of two floats. */
        const bool is_next = i % 2 == 0;
        const uint64_t pixels = 1 + (draw.word[0] >> (4 + (is_next ? 0 : draw.word[1] % 28)));
        const uint64_t any = ((uint64_t)draw.word[2] << 32 | draw.word[3]) % (255 * pixels + 1);
        const uint64_t middle = UINT64_C(1) << 24 | draw.word[2] % (127U << 17) | 1;
        const uint64_t sum = is_next ? (middle * pixels >> 17) + draw.word[1] % 2 : any;
        const float expected = (float)((double)sum / (double)pixels);
        cr_assert_eq(stk_color_mean(sum, pixels), expected, "%llu / %llu", (unsigned long long)sum,
                     (unsigned long long)pixels);
    }
}
