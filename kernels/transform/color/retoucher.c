/* retoucher.c - see retoucher.h. */
#include "kernels/transform/color/retoucher.h"

#include <assert.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- memory --------------------------------------------------------------------- */

static size_t line_elements(const struct stk_transform_plan *plan)
{
    return (size_t)plan->framing.out_width * plan->channels;
}

static size_t image_bytes(const struct stk_transform_plan *plan)
{
    return aligned(plan->framing.out_height * line_elements(plan) + STK_IMAGE_SLACK_BYTES);
}

static size_t padded_bytes(const struct stk_transform_plan *plan)
{
    const size_t ends = (size_t)(plan->framing.retouch.blur - 1) * plan->channels;
    return aligned((line_elements(plan) + ends) * sizeof(int16_t));
}

static size_t ring_line_bytes(const struct stk_transform_plan *plan)
{
    return aligned(line_elements(plan) * sizeof(int16_t));
}

static size_t blur_bytes(const struct stk_transform_plan *plan)
{
    const uint32_t side = plan->framing.retouch.blur;
    return side == 0 ? 0
                     : padded_bytes(plan) + side * ring_line_bytes(plan) +
                           aligned(side * sizeof(int16_t *));
}

size_t stk_retoucher_bytes(const struct stk_transform_plan *plan)
{
    const struct stk_retouching *retouching = &plan->framing.retouch;
    if (!stk_retouching_any(retouching))
        return 0;
    return image_bytes(plan) * (retouching->rotates != 0 ? 2 : 1) + blur_bytes(plan);
}

void stk_retoucher_init(struct stk_retoucher *retoucher, const struct stk_transform_plan *plan,
                        uint8_t *memory)
{
    const struct stk_retouching *retouching = &plan->framing.retouch;
    *retoucher = (struct stk_retoucher){ .bytes = memory };
    memory += image_bytes(plan);
    if (retouching->rotates != 0) {
        retoucher->turned = memory;
        memory += image_bytes(plan);
    }
    if (retouching->blur == 0)
        return;
    retoucher->padded = (int16_t *)(void *)memory;
    memory += padded_bytes(plan);
    retoucher->ring = (int16_t *)(void *)memory;
    retoucher->ring_stride = ring_line_bytes(plan) / sizeof(int16_t);
    memory += retouching->blur * ring_line_bytes(plan);
    retoucher->lines = (const int16_t **)(void *)memory;
}

/* ---- the crop as bytes ---------------------------------------------------------- */

static void fill_pixels(const struct stk_transform_plan *plan, uint8_t *out, int32_t pixels)
{
    for (int32_t x = 0; x < pixels; x++)
        memcpy(out + (size_t)x * plan->channels, plan->fill, plan->channels);
}

static void copy_pixels(const uint8_t *from, uint8_t *to, int32_t pixels, uint32_t channels,
                        bool flip)
{
    if (!flip) {
        memcpy(to, from, (size_t)pixels * channels);
        return;
    }
    for (int32_t x = 0; x < pixels; x++)
        for (uint32_t channel = 0; channel < channels; channel++)
            to[(size_t)(pixels - 1 - x) * channels + channel] =
                from[(size_t)x * channels + channel];
}

static int32_t within(int32_t value, int32_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* A line: fill, the image's pixels from `from` to `to`, fill; mirrored if flipped. */
static void copy_line(const struct stk_transform_plan *plan, const struct stk_crop *crop, int32_t y,
                      uint8_t *out)
{
    const int32_t width = (int32_t)plan->framing.out_width, source_y = crop->y + y;
    const bool empty = source_y < 0 || source_y >= crop->height;
    const int32_t from = empty ? 0 : within(crop->x, crop->width);
    const int32_t to = empty ? 0 : within(crop->x + width, crop->width);
    const int32_t before = empty ? width : within(from - crop->x, width);
    const int32_t after = width - before - (to - from);
    const int32_t left = crop->flip ? after : before;
    const uint32_t channels = plan->channels;
    fill_pixels(plan, out, left);
    if (to > from) {
        const uint8_t *line = crop->pixels + (size_t)source_y * crop->stride_bytes;
        copy_pixels(line + (size_t)from * channels, out + (size_t)left * channels, to - from,
                    channels, crop->flip);
    }
    fill_pixels(plan, out + (size_t)(left + to - from) * channels, crop->flip ? before : after);
}

/* ---- rotation ------------------------------------------------------------------- */

/* Inside the image no pixel needs a check; the compiler knows the channels. */
static inline void turn_line(const struct stk_transform_plan *plan, const uint8_t *from, int64_t y,
                             int64_t x, const struct stk_rotation *rotation, uint8_t *out,
                             const uint32_t channels)
{
    const uint32_t height = plan->framing.out_height, width = plan->framing.out_width;
    const int32_t below = (1 << STK_ROTATE_BITS) - 1;
    const uint32_t rows = height - 1, columns = width - 1;
    const size_t stride = (size_t)width * channels;
    for (uint32_t i = 0; i < width; i++, out += channels) {
        const int32_t at_y = stk_rotation_round(y), at_x = stk_rotation_round(x);
        const uint32_t top = (uint32_t)(at_y >> STK_ROTATE_BITS);
        const uint32_t left = (uint32_t)(at_x >> STK_ROTATE_BITS);
        if (top < rows && left < columns) {
            const uint8_t *at = from + top * stride + (size_t)left * channels;
            for (uint32_t channel = 0; channel < channels; channel++)
                out[channel] =
                    stk_rotation_mix(at[channel], at[channels + channel], at[stride + channel],
                                     at[stride + channels + channel], at_y & below, at_x & below);
        } else {
            stk_rotation_pixel(from, height, width, channels, plan->fill, at_y, at_x, out);
        }
        y += rotation->y_by_x;
        x += rotation->x_by_x;
    }
}

static void turn_image(const struct stk_transform_plan *plan, const struct stk_retouch *retouch,
                       const uint8_t *from, uint8_t *out)
{
    const uint32_t height = plan->framing.out_height, width = plan->framing.out_width;
    const struct stk_rotation rotation = stk_rotation_of(retouch, height, width);
    int64_t y = rotation.y, x = rotation.x;
    for (uint32_t i = 0; i < height; i++, out += line_elements(plan)) {
        if (plan->channels == 1)
            turn_line(plan, from, y, x, &rotation, out, 1);
        else if (plan->channels == 3)
            turn_line(plan, from, y, x, &rotation, out, 3);
        else
            turn_line(plan, from, y, x, &rotation, out, plan->channels);
        y += rotation.y_by_y;
        x += rotation.x_by_y;
    }
}

/* ---- colors -------------------------------------------------------------------- */

static void color(const struct stk_transform_plan *plan, const struct stk_retouch *retouch,
                  uint8_t *image)
{
    const size_t pixels = (size_t)plan->framing.out_height * plan->framing.out_width;
    struct stk_colors colors = { .count = 0 };
    memcpy(colors.amount, retouch->amount, sizeof(colors.amount));
    for (uint32_t i = 0; i < STK_COLOR_STEPS; i++) {
        const uint8_t step = retouch->order[i];
        if ((plan->framing.retouch.colors >> step & 1) == 0)
            continue;
        if (step == STK_COLOR_CONTRAST)
            colors.mean =
                stk_color_mean(plan->gray(&colors, image, pixels, plan->channels), pixels);
        colors.steps[colors.count++] = step;
    }
    plan->color(&colors, image, pixels, plan->channels);
}

/* ---- blur ----------------------------------------------------------------------- */

/* Widens a line and reflects its ends. */
static void pad_line(const struct stk_transform_plan *plan, const uint8_t *line, uint32_t reach,
                     int16_t *padded)
{
    const uint32_t width = plan->framing.out_width, channels = plan->channels;
    int16_t *const middle = padded + (size_t)reach * channels;
    for (size_t i = 0; i < line_elements(plan); i++)
        middle[i] = line[i];
    for (uint32_t i = 0; i < reach; i++)
        for (uint32_t channel = 0; channel < channels; channel++) {
            const size_t left = stk_blur_reflect(-(int32_t)(i + 1), width);
            const size_t right = stk_blur_reflect((int32_t)(width + i), width);
            padded[(size_t)(reach - 1 - i) * channels + channel] = line[left * channels + channel];
            middle[(size_t)(width + i) * channels + channel] = line[right * channels + channel];
        }
}

static int16_t *ring_at(const struct stk_retoucher *retoucher, uint32_t y, uint32_t side)
{
    assert(side > 0); /* it is odd */
    return retoucher->ring + y % side * retoucher->ring_stride;
}

/* Blur in place: a line is written once all lines that need its bytes are in the ring. */
static void blur(const struct stk_retoucher *retoucher, const struct stk_transform_plan *plan,
                 const struct stk_retouch *retouch, uint8_t *image)
{
    const uint32_t height = plan->framing.out_height, reach = retouch->reach, side = 2 * reach + 1;
    const size_t elements = line_elements(plan);
    uint32_t ready = 0;
    for (uint32_t y = 0; y < height; y++) {
        for (; ready < height && ready <= y + reach; ready++) {
            pad_line(plan, image + ready * elements, reach, retoucher->padded);
            for (uint32_t tap = 0; tap < side; tap++)
                retoucher->lines[tap] = retoucher->padded + (size_t)tap * plan->channels;
            plan->blur(retoucher->lines, retouch->weights, reach, elements,
                       ring_at(retoucher, ready, side), NULL);
        }
        for (uint32_t tap = 0; tap < side; tap++) {
            const int32_t at = (int32_t)(y + tap) - (int32_t)reach;
            retoucher->lines[tap] = ring_at(retoucher, stk_blur_reflect(at, height), side);
        }
        plan->blur(retoucher->lines, retouch->weights, reach, elements, NULL, image + y * elements);
    }
}

/* ---- all of it ------------------------------------------------------------------ */

void stk_retoucher_run(struct stk_retoucher *retoucher, const struct stk_transform_plan *plan,
                       uint64_t epoch, uint64_t sample, struct stk_crop *crop)
{
    const struct stk_retouching *retouching = &plan->framing.retouch;
    struct stk_retouch retouch;
    uint8_t *image = retoucher->bytes;
    stk_retouch_draw(retouching, epoch, sample, &retouch);
    for (uint32_t y = 0; y < plan->framing.out_height; y++)
        copy_line(plan, crop, (int32_t)y, image + y * line_elements(plan));
    if (retouching->rotates != 0) {
        turn_image(plan, &retouch, image, retoucher->turned);
        image = retoucher->turned;
    }
    if (retouching->colors != 0)
        color(plan, &retouch, image);
    if (retouching->blur != 0)
        blur(retoucher, plan, &retouch, image);
    crop->pixels = image;
    crop->stride_bytes = line_elements(plan);
    crop->height = (int32_t)plan->framing.out_height;
    crop->width = (int32_t)plan->framing.out_width;
    crop->y = crop->x = 0;
    crop->flip = false;
}
