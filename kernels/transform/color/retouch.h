/* retouch.h - what is done to an image after crop and flip: rotation, colors, blur; the arithmetic
 * of one pixel.
 *
 *   cropped, flipped bytes ─▶ rotated ─▶ four color steps, in an order drawn for the image ─▶ blurred ─▶ cutout, converted
 *
 * Compiled as C and by nvcc, with equal bits: integers, and floats that are only added, multiplied,
 * divided and compared, without contraction. Draws are blocks 0 and 1 of the stream that stoker_rng
 * has for the purpose STK_RNG_RETOUCH (loader/base/rng.h): block 0 the order, brightness, contrast
 * and saturation, block 1 the hue, the angle and the deviation of the blur.
 *
 * Colors: the operations of torchvision's ColorJitter on uint8 tensors, in their order and in
 * float32, cut to whole levels after each. Blur: torchvision's GaussianBlur, with weights of 14
 * bits, along the lines and then across them.
 */
#ifndef STK_KERNELS_TRANSFORM_RETOUCH_H
#define STK_KERNELS_TRANSFORM_RETOUCH_H

#include <math.h>
#include <stdint.h>

#include "loader/base/rng.h"

enum stk_color_step {
    STK_COLOR_BRIGHTNESS,
    STK_COLOR_CONTRAST,
    STK_COLOR_SATURATION,
    STK_COLOR_HUE,
    STK_COLOR_STEPS
};

enum {
    STK_BLUR_WEIGHTS = 32, /* the center and one side of the largest kernel */
    STK_BLUR_BITS = 14,    /* all weights of a kernel add up to 2^14 */
    STK_BLUR_KEPT = 7,     /* bits behind the point between the two axes */
    STK_ROTATE_BITS = 10   /* bits behind the point of a source's position */
};

/* The checked options. Plain data, a part of stk_framing. */
struct stk_retouching {
    uint64_t key;
    float least[STK_COLOR_STEPS], most[STK_COLOR_STEPS]; /* factors; hue: shifts */
    uint32_t colors;                                     /* bit k: step k is applied */
    uint32_t rotates;
    double angle_min, angle_max; /* degrees */
    uint32_t blur;               /* side of the kernel; 0 = none */
    double sigma_min, sigma_max; /* pixels */
};

/* Drawn for one image. */
struct stk_retouch {
    uint8_t order[STK_COLOR_STEPS]; /* all four steps; those that are not set are skipped */
    float amount[STK_COLOR_STEPS];  /* [step]: its factor or shift */
    int64_t cosine, sine;           /* the angle's, in steps of 2^-32 */
    uint32_t reach;                 /* weights besides the center, on each side */
    int32_t weights[STK_BLUR_WEIGHTS];
};

STK_RNG int stk_retouching_any(const struct stk_retouching *retouching)
{
    return retouching->colors != 0 || retouching->rotates != 0 || retouching->blur != 0;
}

/* ---- draws ---------------------------------------------------------------------- */

/* Returns a number in [low, high) from a word. */
STK_RNG double stk_retouch_between(uint32_t word, double low, double high)
{
    return low + (high - low) * ((double)word / 4294967296.0);
}

/* One of the 24 orders of the four steps, from a word. */
STK_RNG void stk_retouch_order(uint32_t word, uint8_t order[STK_COLOR_STEPS])
{
    uint32_t number = (uint32_t)(((uint64_t)word * 24) >> 32);
    uint32_t left = 0x3210; /* the steps that are left, four bits each */
    for (uint32_t count = STK_COLOR_STEPS; count > 0; count--) {
        const uint32_t shift = number % count * 4;
        order[STK_COLOR_STEPS - count] = (uint8_t)(left >> shift & 15);
        left = (left & ((1U << shift) - 1)) | (left >> (shift + 4) << shift);
        number /= count;
    }
}

/* Sine and cosine of x, |x| <= pi / 4, error below 1e-16: Taylor series. */
STK_RNG void stk_retouch_circle(double x, double *sine, double *cosine)
{
    const double square = x * x;
    double s = 1.0, c = 1.0;
    for (int n = 16; n >= 2; n -= 2) {
        s = 1.0 - square / (double)(n * (n + 1)) * s;
        c = 1.0 - square / (double)(n * (n - 1)) * c;
    }
    *sine = x * s;
    *cosine = c;
}

STK_RNG int64_t stk_retouch_steps(double x)
{
    return (int64_t)(x * 4294967296.0 + (x < 0.0 ? -0.5 : 0.5));
}

/* Multiples of 90 degrees are exact. */
STK_RNG void stk_retouch_turn(double degrees, struct stk_retouch *retouch)
{
    const int32_t quarter = (int32_t)(degrees / 90.0 + (degrees < 0.0 ? -0.5 : 0.5));
    double sine, cosine;
    stk_retouch_circle((degrees - 90.0 * (double)quarter) * (3.14159265358979323846 / 180.0), &sine,
                       &cosine);
    const int64_t s = stk_retouch_steps(sine), c = stk_retouch_steps(cosine);
    const int32_t turns = quarter & 3;
    retouch->cosine = turns == 0 ? c : turns == 1 ? -s : turns == 2 ? -c : s;
    retouch->sine = turns == 0 ? s : turns == 1 ? c : turns == 2 ? -s : -c;
}

/* e to the x, x <= 0, relative error below 1e-9; 0 below -20, where it is less than any weight. */
STK_RNG double stk_retouch_exp(double x)
{
    const double small = x / 64.0;
    double sum = 1.0;
    if (x < -20.0)
        return 0.0;
    for (int n = 12; n >= 1; n--)
        sum = 1.0 + small * (1.0 / (double)n) * sum;
    for (int i = 0; i < 6; i++)
        sum = sum * sum;
    return sum;
}

/* The kernel's weights. Rounding goes to the center, so that they add up to 2^14. */
STK_RNG void stk_retouch_kernel(uint32_t side, double sigma, struct stk_retouch *retouch)
{
    const uint32_t reach = side / 2;
    double sum = 1.0;
    int32_t rest = 1 << STK_BLUR_BITS;
    for (uint32_t i = 1; i <= reach; i++) {
        const double at = (double)i / sigma;
        sum += 2.0 * stk_retouch_exp(-0.5 * (at * at));
    }
    for (uint32_t i = 1; i <= reach; i++) {
        const double at = (double)i / sigma;
        const double share = stk_retouch_exp(-0.5 * (at * at)) / sum;
        retouch->weights[i] = (int32_t)(share * (double)(1 << STK_BLUR_BITS) + 0.5);
        rest -= 2 * retouch->weights[i];
    }
    retouch->weights[0] = rest;
    retouch->reach = reach;
}

/* Draws what is done to a sample in an epoch. */
STK_RNG void stk_retouch_draw(const struct stk_retouching *retouching, uint64_t epoch,
                              uint64_t sample, struct stk_retouch *retouch)
{
    const struct stk_random first = stk_philox(retouching->key, epoch, sample);
    const struct stk_random second = stk_philox(retouching->key + 1, epoch, sample);
    stk_retouch_order(first.word[0], retouch->order);
    for (uint32_t step = 0; step < STK_COLOR_STEPS; step++)
        retouch->amount[step] = (float)stk_retouch_between(
            step < STK_COLOR_HUE ? first.word[1 + step] : second.word[0],
            (double)retouching->least[step], (double)retouching->most[step]);
    retouch->cosine = INT64_C(1) << 32;
    retouch->sine = 0;
    if (retouching->rotates != 0)
        stk_retouch_turn(
            stk_retouch_between(second.word[1], retouching->angle_min, retouching->angle_max),
            retouch);
    retouch->reach = 0;
    if (retouching->blur != 0)
        stk_retouch_kernel(
            retouching->blur,
            stk_retouch_between(second.word[2], retouching->sigma_min, retouching->sigma_max),
            retouch);
}

/* Returns the angle drawn for a sample, degrees; 0 without a rotation. */
STK_RNG double stk_retouch_angle(const struct stk_retouching *retouching, uint64_t epoch,
                                 uint64_t sample)
{
    if (retouching->rotates == 0)
        return 0.0;
    return stk_retouch_between(stk_philox(retouching->key + 1, epoch, sample).word[1],
                               retouching->angle_min, retouching->angle_max);
}

/* ---- colors: channels are floats with whole values 0..255 ----------------------- */

STK_RNG float stk_color_cut(float value)
{
    const float above = value < 0.0F ? 0.0F : value;
    const float inside = above > 255.0F ? 255.0F : above;
    return (float)(int32_t)inside;
}

STK_RNG float stk_color_gray(float red, float green, float blue)
{
    return (float)(int32_t)((0.2989F * red + 0.587F * green) + 0.114F * blue);
}

/* factor x value + (1 - factor) x other; shift is the second product. */
STK_RNG float stk_color_blend(float value, float factor, float shift)
{
    return stk_color_cut(factor * value + shift);
}

STK_RNG float stk_color_larger(float a, float b)
{
    return a > b ? a : b;
}

STK_RNG float stk_color_smaller(float a, float b)
{
    return a < b ? a : b;
}

STK_RNG float stk_color_unit(float x)
{
    const float above = x < 0.0F ? 0.0F : x;
    return above > 1.0F ? 1.0F : above;
}

/* Shifts the hue: to HSV and back, in units of 1/255. The selections have no branches, so that
 * loops over pixels become vectors. */
STK_RNG void stk_color_hue(float *red, float *green, float *blue, float shift)
{
    const float r = *red / 255.0F, g = *green / 255.0F, b = *blue / 255.0F;
    const float most = stk_color_larger(stk_color_larger(r, g), b);
    const float least = stk_color_smaller(stk_color_smaller(r, g), b);
    const float range = most - least;
    const float s = range / (range == 0.0F ? 1.0F : most);
    const float divisor = range == 0.0F ? 1.0F : range;
    const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
    const float if_blue = (4.0F + gc) - rc, if_green = (2.0F + rc) - bc, if_red = bc - gc;
    const float sector = most == r ? if_red : most == g ? if_green : if_blue;
    const float angle = sector / 6.0F + 1.0F; /* above 0: the sector is at least -1 */
    const float shifted = (angle - (float)(int32_t)angle) + shift;
    const float part = shifted - (float)(int32_t)shifted;
    const float h = (part < 0.0F ? part + 1.0F : part) * 6.0F;
    const float whole = (float)(int32_t)h;
    const float f = h - whole;
    const float p = stk_color_unit(most * (1.0F - s));
    const float q = stk_color_unit(most * (1.0F - s * f));
    const float t = stk_color_unit(most * (1.0F - s * (1.0F - f)));
    const float i = whole == 6.0F ? 0.0F : whole;
    const float out_r = i == 0.0F   ? most
                        : i == 1.0F ? q
                        : i == 2.0F ? p
                        : i == 3.0F ? p
                        : i == 4.0F ? t
                                    : most;
    const float out_g = i == 0.0F ? t : i == 1.0F ? most : i == 2.0F ? most : i == 3.0F ? q : p;
    const float out_b = i == 0.0F   ? p
                        : i == 1.0F ? p
                        : i == 2.0F ? t
                        : i == 3.0F ? most
                        : i == 4.0F ? most
                                    : q;
    *red = (float)(int32_t)(out_r * 255.999F);
    *green = (float)(int32_t)(out_g * 255.999F);
    *blue = (float)(int32_t)(out_b * 255.999F);
}

/* Applies one step to a pixel. mean: average gray of the image, for the contrast. gray: the image
 * has one color channel, which is in red. */
STK_RNG void stk_color_apply(uint32_t step, float amount, float mean, int gray, float *red,
                             float *green, float *blue)
{
    const float rest = 1.0F - amount;
    if (step == STK_COLOR_HUE) {
        if (!gray)
            stk_color_hue(red, green, blue, amount);
        return;
    }
    if (step == STK_COLOR_SATURATION && gray)
        return;
    const float shift = step == STK_COLOR_BRIGHTNESS ? 0.0F
                        : step == STK_COLOR_CONTRAST ? rest * mean
                                                     : rest * stk_color_gray(*red, *green, *blue);
    *red = stk_color_blend(*red, amount, shift);
    *green = stk_color_blend(*green, amount, shift);
    *blue = stk_color_blend(*blue, amount, shift);
}

/* Returns the average gray from the sum over all pixels, rounded to the nearest float:
 * (float)((double)sum / pixels) for up to 2^28 pixels, whose quotients are never so near the middle
 * of two floats that rounding twice would matter. In integers, for GPUs that have little double
 * precision. */
STK_RNG float stk_color_mean(uint64_t sum, uint64_t pixels)
{
    if (sum == 0 || pixels == 0)
        return 0.0F;
    float unit = 1.0F;
    for (; sum >> 63 == 0; sum *= 2)
        unit *= 0.5F;
    /* At least 36 bits; the last one is set if a later one is. */
    const uint64_t quotient = sum / pixels | (sum % pixels != 0 ? 1 : 0);
    return (float)quotient * unit;
}

/* ---- rotation -------------------------------------------------------------------- */

/* Position in the source of the output's pixel (0, 0), and how it moves with y and x, in steps of
 * 2^-33 pixels. */
struct stk_rotation {
    int64_t y, x, y_by_y, x_by_y, y_by_x, x_by_x;
};

STK_RNG struct stk_rotation stk_rotation_of(const struct stk_retouch *retouch, uint32_t height,
                                            uint32_t width)
{
    const int64_t from_y = 1 - (int64_t)height,
                  from_x = 1 - (int64_t)width; /* half pixels from the center */
    struct stk_rotation rotation;
    rotation.x = retouch->cosine * from_x - retouch->sine * from_y +
                 ((int64_t)width - 1) * (INT64_C(1) << 32);
    rotation.y = retouch->sine * from_x + retouch->cosine * from_y +
                 ((int64_t)height - 1) * (INT64_C(1) << 32);
    rotation.x_by_x = 2 * retouch->cosine;
    rotation.y_by_x = 2 * retouch->sine;
    rotation.x_by_y = -2 * retouch->sine;
    rotation.y_by_y = 2 * retouch->cosine;
    return rotation;
}

/* A position in steps of 2^-10 pixels, rounded. */
STK_RNG int32_t stk_rotation_round(int64_t steps)
{
    return (int32_t)((steps + (INT64_C(1) << (32 - STK_ROTATE_BITS))) >> (33 - STK_ROTATE_BITS));
}

/* The average of the four pixels around a position; y, x: its part below a whole pixel. */
STK_RNG uint8_t stk_rotation_mix(uint8_t top_left, uint8_t top_right, uint8_t bottom_left,
                                 uint8_t bottom_right, int32_t y, int32_t x)
{
    const int32_t one = 1 << STK_ROTATE_BITS;
    const int32_t top = top_left * (one - x) + top_right * x;
    const int32_t bottom = bottom_left * (one - x) + bottom_right * x;
    return (uint8_t)((top * (one - y) + bottom * y + (1 << (2 * STK_ROTATE_BITS - 1))) >>
                     (2 * STK_ROTATE_BITS));
}

/* Writes one pixel of `channels` bytes; y, x: its position in the source, in steps of 2^-10. */
STK_RNG void stk_rotation_pixel(const uint8_t *from, uint32_t height, uint32_t width,
                                uint32_t channels, const uint8_t *fill, int32_t y, int32_t x,
                                uint8_t *out)
{
    const int32_t below = (1 << STK_ROTATE_BITS) - 1;
    const int32_t top = y >> STK_ROTATE_BITS, left = x >> STK_ROTATE_BITS;
    const int rows[2] = { top >= 0 && top < (int32_t)height,
                          top >= -1 && top + 1 < (int32_t)height };
    const int columns[2] = { left >= 0 && left < (int32_t)width,
                             left >= -1 && left + 1 < (int32_t)width };
    const int64_t stride = (int64_t)width * channels;
    const int64_t at = top * stride + (int64_t)left * channels;
    for (uint32_t channel = 0; channel < channels; channel++) {
        const uint8_t none = fill[channel];
        const uint8_t *of_channel = from + channel;
        out[channel] =
            stk_rotation_mix(rows[0] && columns[0] ? of_channel[at] : none,
                             rows[0] && columns[1] ? of_channel[at + channels] : none,
                             rows[1] && columns[0] ? of_channel[at + stride] : none,
                             rows[1] && columns[1] ? of_channel[at + stride + channels] : none,
                             y & below, x & below);
    }
}

/* ---- blur ------------------------------------------------------------------------ */

/* A coordinate that may lie up to count - 1 beyond the edge, reflected without repeating the
 * edge. */
STK_RNG uint32_t stk_blur_reflect(int32_t at, uint32_t count)
{
    const int32_t last = (int32_t)count - 1;
    return (uint32_t)(at < 0 ? -at : at > last ? 2 * last - at : at);
}

STK_RNG int32_t stk_blur_keep(int32_t sum)
{
    return (sum + (1 << (STK_BLUR_BITS - STK_BLUR_KEPT - 1))) >> (STK_BLUR_BITS - STK_BLUR_KEPT);
}

STK_RNG uint8_t stk_blur_settle(int32_t sum)
{
    return (uint8_t)((sum + (1 << (STK_BLUR_BITS + STK_BLUR_KEPT - 1))) >>
                     (STK_BLUR_BITS + STK_BLUR_KEPT));
}

#endif
