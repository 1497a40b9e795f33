/* launch_body.h - the work of one thread of each kernel, compiled by nvcc.
 *
 * The including file defines how a float is stored as a half: stk_store_f16(), stk_store_bf16().
 *
 * Scratch of sample k, 32-bit words:
 *   x: out_width coordinates, then y: out_height coordinates
 *   each [first, count, weight 0 .. weight taps_max - 1]
 */
#ifndef STK_KERNELS_TRANSFORM_LAUNCH_BODY_H
#define STK_KERNELS_TRANSFORM_LAUNCH_BODY_H

#include "kernels/transform/gpu/launch.h"
#include "kernels/transform/resize/taps.h"

#ifdef __CUDACC__
#define STK_UNROLL _Pragma("unroll")
#else
#define STK_UNROLL
#endif

/* The visible part of the grid: its position, and its size, which may be 0. */
struct stk_view {
    int32_t top, left, height, width;
};

STK_RNG int32_t stk_view_side(int32_t at, uint32_t out, uint32_t grid, int32_t *first)
{
    const int32_t end = at + (int32_t)out;
    *first = at < 0 ? 0 : at;
    const int32_t last = end < (int32_t)grid ? end : (int32_t)grid;
    return last > *first ? last - *first : 0;
}

STK_RNG struct stk_view stk_view_of(const struct stk_framing *framing,
                                    const struct stk_frame *frame)
{
    struct stk_view view;
    view.height = stk_view_side(frame->y, framing->out_height, frame->grid_height, &view.top);
    view.width = stk_view_side(frame->x, framing->out_width, frame->grid_width, &view.left);
    return view;
}

STK_RNG uint32_t stk_launch_height(const struct stk_launch_batch *batch, uint32_t k)
{
    return batch->sources != 0 ? batch->sources[k].height : batch->height;
}

STK_RNG uint32_t stk_launch_width(const struct stk_launch_batch *batch, uint32_t k)
{
    return batch->sources != 0 ? batch->sources[k].width : batch->width;
}

/* Computes the frame of sample k, without double precision. */
STK_RNG void stk_launch_draw(const struct stk_launch_batch *batch, uint32_t k,
                             struct stk_frame *frame)
{
    stk_frame_whole(stk_launch_height(batch, k), stk_launch_width(batch, k), frame);
    if (batch->rectangles != 0) {
        const struct stk_rectangle *rectangle = &batch->rectangles[k];
        frame->top = rectangle->top;
        frame->left = rectangle->left;
        frame->height = rectangle->height;
        frame->width = rectangle->width;
    }
    stk_frame_grid(&batch->framing, frame);
    stk_frame_place_output(&batch->framing,
                           stk_frame_words(&batch->framing, batch->epoch, batch->ids[k]), frame);
}

STK_RNG const uint8_t *stk_launch_image(const struct stk_launch_batch *batch, uint32_t k)
{
    const uint64_t number = batch->gather != 0 ? batch->ids[k] : k;
    if (batch->sources != 0)
        return batch->images + batch->sources[k].at;
    return batch->images + number * batch->height * batch->width * batch->channels;
}

STK_RNG uint32_t *stk_launch_taps(const struct stk_launch_batch *batch, uint32_t k,
                                  uint32_t coordinate)
{
    const uint64_t sides = batch->framing.out_height + batch->framing.out_width;
    return batch->taps + (k * sides + coordinate) * (2 + (uint64_t)batch->taps_max);
}

STK_RNG uint8_t *stk_launch_resized(const struct stk_launch_batch *batch, uint32_t k)
{
    return batch->resized +
           (uint64_t)k * batch->framing.out_height * batch->framing.out_width * batch->channels;
}

/* ---- stk_rectangles: one thread a sample ---------------------------------------- */

STK_RNG void stk_rectangles_thread(const struct stk_launch_batch *batch, uint32_t k)
{
    struct stk_frame frame;
    stk_frame_rectangle(&batch->framing, stk_launch_height(batch, k), stk_launch_width(batch, k),
                        batch->epoch, batch->ids[k], &frame);
    struct stk_rectangle *rectangle = &batch->rectangles[k];
    rectangle->top = frame.top;
    rectangle->left = frame.left;
    rectangle->height = frame.height;
    rectangle->width = frame.width;
}

/* ---- stk_keep: one thread a pixel ----------------------------------------------- */

STK_RNG void stk_keep_thread(const struct stk_keep_launch *launch, uint32_t k, uint32_t pixel)
{
    const struct stk_launch_batch *batch = &launch->batch;
    const uint64_t pixels = (uint64_t)batch->height * batch->width;
    const uint8_t *from = batch->images + (k * pixels + pixel) * batch->channels;
    uint8_t *to = launch->kept + (batch->ids[k] * pixels + pixel) * batch->channels;
    if (launch->fresh[k] == 0)
        return;
    for (uint32_t channel = 0; channel < batch->channels; channel++)
        to[channel] = from[channel];
}

/* ---- stk_rows: one block a piece of a field's row ------------------------------- */

#ifdef __CUDACC__
typedef uint64_t stk_row_word;
#else
typedef uint64_t __attribute__((may_alias)) stk_row_word;
#endif

/* Blocks of one sample: the first piece of every field, then the second of every field, ... */
STK_RNG void stk_rows_thread(const struct stk_rows_launch *launch, uint32_t k, uint32_t block,
                             uint32_t thread)
{
    const struct stk_rows_field *field = &launch->fields[block % launch->field_count];
    const uint64_t bytes = field->row_bytes;
    const uint64_t begin = (uint64_t)(block / launch->field_count) * STK_ROWS_PIECE_BYTES;
    const uint64_t end =
        begin + STK_ROWS_PIECE_BYTES < bytes ? begin + STK_ROWS_PIECE_BYTES : bytes;
    uint8_t *row = field->rows + k * bytes;
    uint8_t *kept = field->kept + launch->batch.ids[k] * bytes;
    const bool fresh = launch->fresh[k] != 0;
    const uint8_t *from = fresh ? row : kept;
    uint8_t *to = fresh ? kept : row;
    if (bytes % sizeof(stk_row_word) == 0) {
        const uint64_t step = STK_LAUNCH_THREADS * sizeof(stk_row_word);
        for (uint64_t at = begin + thread * sizeof(stk_row_word); at < end; at += step)
            *(stk_row_word *)(void *)(to + at) = *(const stk_row_word *)(const void *)(from + at);
    } else {
        for (uint64_t at = begin + thread; at < end; at += STK_LAUNCH_THREADS)
            to[at] = from[at];
    }
}

/* ---- stk_taps: one thread a coordinate ------------------------------------------ */

STK_RNG void stk_taps_thread(const struct stk_launch_batch *batch, const struct stk_frame *frame,
                             uint32_t k, uint32_t coordinate)
{
    const struct stk_view view = stk_view_of(&batch->framing, frame);
    const uint32_t width = batch->framing.out_width;
    const bool along = coordinate < width;
    const uint32_t place = along ? coordinate : coordinate - width;
    if ((int32_t)place >= (along ? view.width : view.height))
        return;
    const struct stk_taps taps =
        along ? stk_taps_at(frame->width, frame->grid_width, (uint32_t)view.left + place)
              : stk_taps_at(frame->height, frame->grid_height, (uint32_t)view.top + place);
    uint32_t *out = stk_launch_taps(batch, k, coordinate);
    out[0] = taps.first;
    out[1] = taps.count;
    for (uint32_t tap = 0; tap < taps.count; tap++)
        out[2 + tap] = (uint32_t)stk_tap_weight(&taps, tap);
}

/* ---- stk_resize: one thread a pixel --------------------------------------------- */

STK_RNG int32_t stk_settle(int32_t sum)
{
    const int32_t value = sum >> STK_TAP_BITS;
    return value > 255 ? 255 : value;
}

/* The number of channels is a compile-time constant, so that the sums stay in registers. */
STK_RNG void stk_resize_pixel(const struct stk_launch_batch *batch, const struct stk_frame *frame,
                              uint32_t k, uint32_t y, uint32_t x, const uint32_t channels)
{
    const uint32_t *along = stk_launch_taps(batch, k, x);
    const uint32_t *across = stk_launch_taps(batch, k, batch->framing.out_width + y);
    const uint64_t stride = (uint64_t)stk_launch_width(batch, k) * channels;
    const uint8_t *line = stk_launch_image(batch, k) + (frame->top + across[0]) * stride +
                          (uint64_t)(frame->left + along[0]) * channels;
    int32_t sums[STK_LAUNCH_CHANNELS_MAX];
    STK_UNROLL
    for (uint32_t channel = 0; channel < channels; channel++)
        sums[channel] = STK_TAP_HALF;
    for (uint32_t row = 0; row < across[1]; row++, line += stride) {
        int32_t inner[STK_LAUNCH_CHANNELS_MAX];
        STK_UNROLL
        for (uint32_t channel = 0; channel < channels; channel++)
            inner[channel] = STK_TAP_HALF;
        for (uint32_t tap = 0; tap < along[1]; tap++) {
            const int32_t weight = (int32_t)along[2 + tap];
            STK_UNROLL
            for (uint32_t channel = 0; channel < channels; channel++)
                inner[channel] += weight * line[tap * channels + channel];
        }
        const int32_t weight = (int32_t)across[2 + row];
        STK_UNROLL
        for (uint32_t channel = 0; channel < channels; channel++)
            sums[channel] += weight * stk_settle(inner[channel]);
    }
    uint8_t *out =
        stk_launch_resized(batch, k) + ((uint64_t)y * batch->framing.out_width + x) * channels;
    STK_UNROLL
    for (uint32_t channel = 0; channel < channels; channel++)
        out[channel] = (uint8_t)stk_settle(sums[channel]);
}

STK_RNG void stk_resize_thread(const struct stk_launch_batch *batch, const struct stk_frame *frame,
                               uint32_t k, uint32_t pixel)
{
    const struct stk_view view = stk_view_of(&batch->framing, frame);
    const uint32_t y = pixel / batch->framing.out_width, x = pixel % batch->framing.out_width;
    if ((int32_t)y >= view.height || (int32_t)x >= view.width)
        return;
    if (batch->channels == 3)
        stk_resize_pixel(batch, frame, k, y, x, 3);
    else if (batch->channels == 1)
        stk_resize_pixel(batch, frame, k, y, x, 1);
    else if (batch->channels == 4)
        stk_resize_pixel(batch, frame, k, y, x, 4);
    else
        stk_resize_pixel(batch, frame, k, y, x, 2);
}

/* ---- stk_retouch: one thread a sample -------------------------------------------- */

STK_RNG void stk_retouch_thread(const struct stk_retouch_launch *launch, uint32_t k)
{
    stk_retouch_draw(&launch->batch.framing.retouch, launch->batch.epoch, launch->batch.ids[k],
                     &launch->drawn[k]);
}

STK_RNG uint32_t stk_retouch_pixels(const struct stk_retouch_launch *launch)
{
    return launch->batch.framing.out_height * launch->batch.framing.out_width;
}

/* Sample k of an array of images. */
STK_RNG uint64_t stk_retouch_at(const struct stk_retouch_launch *launch, uint32_t k)
{
    return (uint64_t)k * stk_retouch_pixels(launch) * launch->batch.channels;
}

/* The image that colors and blur change in place. */
STK_RNG uint8_t *stk_retouch_image(const struct stk_retouch_launch *launch, uint32_t k)
{
    return (launch->turned != 0 ? launch->turned : launch->cropped) + stk_retouch_at(launch, k);
}

/* ---- stk_rotate: one thread a pixel --------------------------------------------- */

STK_RNG void stk_rotate_thread(const struct stk_retouch_launch *launch, uint32_t k, uint32_t pixel)
{
    const uint32_t height = launch->batch.framing.out_height;
    const uint32_t width = launch->batch.framing.out_width, channels = launch->batch.channels;
    const struct stk_rotation rotation = stk_rotation_of(&launch->drawn[k], height, width);
    const uint32_t y = pixel / width, x = pixel % width;
    stk_rotation_pixel(launch->cropped + stk_retouch_at(launch, k), height, width, channels,
                       launch->fill,
                       stk_rotation_round(rotation.y + y * rotation.y_by_y + x * rotation.y_by_x),
                       stk_rotation_round(rotation.x + y * rotation.x_by_y + x * rotation.x_by_x),
                       stk_retouch_image(launch, k) + (uint64_t)pixel * channels);
}

/* ---- stk_gray: one block a sample; stk_color: one thread a pixel ---------------- */

struct stk_color_pixel {
    float red, green, blue;
};

STK_RNG struct stk_color_pixel stk_color_load(const struct stk_retouch_launch *launch,
                                              const uint8_t *at)
{
    const uint32_t color = launch->batch.channels < 3 ? 0 : 1;
    struct stk_color_pixel pixel;
    pixel.red = at[0];
    pixel.green = at[color];
    pixel.blue = at[2 * color];
    return pixel;
}

/* Applies the drawn steps; with until_contrast only those before the contrast. */
STK_RNG void stk_color_steps(const struct stk_retouch_launch *launch, uint32_t k, float mean,
                             const int until_contrast, struct stk_color_pixel *pixel)
{
    const struct stk_retouch *drawn = &launch->drawn[k];
    const int gray = launch->batch.channels < 3;
    for (uint32_t i = 0; i < STK_COLOR_STEPS; i++) {
        const uint32_t step = drawn->order[i];
        if (until_contrast && step == STK_COLOR_CONTRAST)
            return;
        if ((launch->batch.framing.retouch.colors >> step & 1) != 0)
            stk_color_apply(step, drawn->amount[step], mean, gray, &pixel->red, &pixel->green,
                            &pixel->blue);
    }
}

/* Returns what a thread of a sample's block adds to the sum. */
STK_RNG uint64_t stk_gray_thread(const struct stk_retouch_launch *launch, uint32_t k,
                                 uint32_t thread)
{
    const uint32_t pixels = stk_retouch_pixels(launch);
    uint64_t sum = 0;
    for (uint32_t i = thread; i < pixels; i += STK_LAUNCH_THREADS) {
        struct stk_color_pixel pixel = stk_color_load(
            launch, stk_retouch_image(launch, k) + (uint64_t)i * launch->batch.channels);
        stk_color_steps(launch, k, 0.0F, 1, &pixel);
        sum += (uint32_t)(launch->batch.channels < 3
                              ? pixel.red
                              : stk_color_gray(pixel.red, pixel.green, pixel.blue));
    }
    return sum;
}

STK_RNG void stk_color_thread(const struct stk_retouch_launch *launch, uint32_t k, uint32_t i)
{
    uint8_t *at = stk_retouch_image(launch, k) + (uint64_t)i * launch->batch.channels;
    struct stk_color_pixel pixel = stk_color_load(launch, at);
    const uint32_t contrasts = launch->batch.framing.retouch.colors >> STK_COLOR_CONTRAST & 1;
    stk_color_steps(launch, k, contrasts != 0 ? launch->means[k] : 0.0F, 0, &pixel);
    at[0] = (uint8_t)(int32_t)pixel.red;
    if (launch->batch.channels < 3)
        return;
    at[1] = (uint8_t)(int32_t)pixel.green;
    at[2] = (uint8_t)(int32_t)pixel.blue;
}

/* ---- stk_blur_along, stk_blur_across: one thread a pixel ------------------------- */

STK_RNG int32_t stk_blur_weight(const struct stk_retouch *drawn, int32_t tap)
{
    return drawn->weights[tap < 0 ? -tap : tap];
}

STK_RNG void stk_blur_along_thread(const struct stk_retouch_launch *launch, uint32_t k,
                                   uint32_t pixel)
{
    const struct stk_retouch *drawn = &launch->drawn[k];
    const uint32_t width = launch->batch.framing.out_width, channels = launch->batch.channels;
    const int32_t reach = (int32_t)drawn->reach, x = (int32_t)(pixel % width);
    const uint8_t *line = stk_retouch_image(launch, k) + (uint64_t)(pixel - (uint32_t)x) * channels;
    int16_t *out = launch->lines + stk_retouch_at(launch, k) + (uint64_t)pixel * channels;
    for (uint32_t channel = 0; channel < channels; channel++) {
        int32_t sum = 0;
        for (int32_t tap = -reach; tap <= reach; tap++)
            sum += stk_blur_weight(drawn, tap) *
                   line[(uint64_t)stk_blur_reflect(x + tap, width) * channels + channel];
        out[channel] = (int16_t)stk_blur_keep(sum);
    }
}

STK_RNG void stk_blur_across_thread(const struct stk_retouch_launch *launch, uint32_t k,
                                    uint32_t pixel)
{
    const struct stk_retouch *drawn = &launch->drawn[k];
    const uint32_t height = launch->batch.framing.out_height;
    const uint32_t width = launch->batch.framing.out_width, channels = launch->batch.channels;
    const int32_t reach = (int32_t)drawn->reach, y = (int32_t)(pixel / width);
    const int16_t *column =
        launch->lines + stk_retouch_at(launch, k) + (uint64_t)(pixel % width) * channels;
    uint8_t *out = stk_retouch_image(launch, k) + (uint64_t)pixel * channels;
    for (uint32_t channel = 0; channel < channels; channel++) {
        int32_t sum = 0;
        for (int32_t tap = -reach; tap <= reach; tap++)
            sum += stk_blur_weight(drawn, tap) *
                   column[(uint64_t)stk_blur_reflect(y + tap, height) * width * channels + channel];
        out[channel] = stk_blur_settle(sum);
    }
}

#endif
