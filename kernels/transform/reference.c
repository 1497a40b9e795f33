/* reference.c - the transforms by their definition: the tests' reference.
 *
 * It works on whole images, one step and one pixel at a time, and shares only the draws and the
 * weights of taps with the fast code.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/transform/resize/taps.h"
#include "kernels/transform/transform.h"

/* An allocated image. */
struct image {
    uint32_t height, width, channels;
    uint8_t *pixels;
};

static bool image_make(struct image *image, uint32_t height, uint32_t width, uint32_t channels)
{
    *image = (struct image){ height, width, channels, malloc((size_t)height * width * channels) };
    return image->pixels != NULL;
}

static uint8_t *at(const struct image *image, size_t y, size_t x)
{
    return image->pixels + (y * image->width + x) * image->channels;
}

static uint8_t rounded(int64_t sum)
{
    const int64_t value = (sum + STK_TAP_HALF) >> STK_TAP_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* Where a rectangle's side lies in an image that may be scaled: pixels from `first` on, in which it
 * begins at `offset`. */
struct side {
    uint32_t first, pixels;
    double offset, size;
};

static struct side side_of(const struct stk_image *image, uint32_t at, uint32_t size)
{
    const uint32_t eighths = image->eighths == 0 ? 8 : image->eighths;
    const uint32_t first = at * eighths / 8, end = ((at + size) * eighths + 7) / 8;
    return (struct side){ first, end - first, (double)(at * eighths % 8) / 8.0,
                          (double)(size * eighths) / 8.0 };
}

/* Resamples `from`, which holds a side of the rectangle, to the height or the width of `to`. */
static void resample(const struct image *from, const struct side *side, const struct image *to,
                     bool along)
{
    for (uint32_t y = 0; y < to->height; y++) {
        for (uint32_t x = 0; x < to->width; x++) {
            const struct stk_taps taps =
                stk_taps_within(side->offset, side->size, side->pixels,
                                along ? to->width : to->height, along ? x : y);
            for (uint32_t channel = 0; channel < to->channels; channel++) {
                int64_t sum = 0;
                for (uint32_t tap = 0; tap < taps.count; tap++) {
                    const uint8_t *pixel =
                        along ? at(from, y, taps.first + tap) : at(from, taps.first + tap, x);
                    sum += (int64_t)stk_tap_weight(&taps, tap) * pixel[channel];
                }
                at(to, y, x)[channel] = rounded(sum);
            }
        }
    }
}

/* Copies the rectangle's pixels; those that are not stored, and not needed, become 0. */
static void cut_out(const struct stk_image *image, const struct side *down,
                    const struct side *across, const struct image *to)
{
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++) {
            const uint32_t from_y = down->first + y - image->y;
            const uint32_t from_x = across->first + x - image->x;
            const bool is_stored = from_y < image->height && from_x < image->width;
            const size_t pixel = (size_t)from_y * image->width + from_x;
            for (uint32_t channel = 0; channel < to->channels; channel++)
                at(to, y, x)[channel] =
                    is_stored ? image->pixels[pixel * to->channels + channel] : 0;
        }
}

static void store_element(const struct stk_convert_plan *convert, uint32_t channel, uint8_t byte,
                          uint8_t *out, size_t element)
{
    if (convert->copies) {
        out[element] = byte;
        return;
    }
    /* NHWC: the period is a multiple of the channels; NCHW: it is 1 or the channels. */
    const uint32_t place = channel % convert->period;
    const float value = fmaf((float)byte, convert->factor[place], convert->bias[place]);
    if (convert->to == STOKER_DTYPE_FLOAT32) {
        memcpy(out + element * 4, &value, 4);
        return;
    }
    const uint16_t half = convert->to == STOKER_DTYPE_FLOAT16 ? stk_float16_from_float(value)
                                                              : stk_bfloat16_from_float(value);
    memcpy(out + element * 2, &half, 2);
}

static bool inside(int64_t value, int64_t from, int64_t to)
{
    return value >= from && value < to;
}

/* Returns the byte at y, x of the output, before conversion. */
static const uint8_t *seen(const struct stk_transform_plan *plan, const struct stk_frame *frame,
                           const struct image *grid, uint32_t y, uint32_t x)
{
    const int64_t width = plan->framing.out_width;
    const int64_t grid_y = (int64_t)frame->y + y;
    const int64_t grid_x = (int64_t)frame->x + (frame->flip ? width - 1 - x : x);
    if (inside(y, frame->cut_top, frame->cut_bottom) &&
        inside(x, frame->cut_left, frame->cut_right))
        return plan->fill;
    if (!inside(grid_y, 0, grid->height) || !inside(grid_x, 0, grid->width))
        return plan->fill;
    return at(grid, (size_t)grid_y, (size_t)grid_x);
}

/* ---- rotation, colors, blur ---------------------------------------------------- */

static void crop_and_flip(const struct stk_transform_plan *plan, const struct stk_frame *frame,
                          const struct image *grid, struct image *to)
{
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++)
            memcpy(at(to, y, x), seen(plan, frame, grid, y, x), to->channels);
}

static void turn_image(const struct stk_transform_plan *plan, const struct stk_retouch *retouch,
                       const struct image *from, struct image *to)
{
    const struct stk_rotation rotation = stk_rotation_of(retouch, to->height, to->width);
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++)
            stk_rotation_pixel(
                from->pixels, from->height, from->width, from->channels, plan->fill,
                stk_rotation_round(rotation.y + y * rotation.y_by_y + x * rotation.y_by_x),
                stk_rotation_round(rotation.x + y * rotation.x_by_y + x * rotation.x_by_x),
                at(to, y, x));
}

static float average_gray(const struct image *image)
{
    const size_t pixels = (size_t)image->height * image->width;
    uint64_t sum = 0;
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *pixel = image->pixels + i * image->channels;
        sum +=
            image->channels < 3 ? pixel[0] : (uint32_t)stk_color_gray(pixel[0], pixel[1], pixel[2]);
    }
    return stk_color_mean(sum, pixels);
}

/* One step on the entire image after the other. */
static void color(const struct stk_retouching *retouching, const struct stk_retouch *retouch,
                  struct image *image)
{
    const size_t pixels = (size_t)image->height * image->width;
    const uint32_t colors = image->channels < 3 ? 1 : 3;
    for (uint32_t i = 0; i < STK_COLOR_STEPS; i++) {
        const uint32_t step = retouch->order[i];
        const float mean = average_gray(image);
        for (size_t k = 0; k < pixels && (retouching->colors >> step & 1) != 0; k++) {
            uint8_t *pixel = image->pixels + k * image->channels;
            float value[3] = { 0 };
            for (uint32_t channel = 0; channel < colors; channel++)
                value[channel] = pixel[channel];
            stk_color_apply(step, retouch->amount[step], mean, colors == 1, &value[0], &value[1],
                            &value[2]);
            for (uint32_t channel = 0; channel < colors; channel++)
                pixel[channel] = (uint8_t)value[channel];
        }
    }
}

static int32_t weight_of(const struct stk_retouch *retouch, int32_t tap)
{
    return retouch->weights[tap < 0 ? -tap : tap];
}

/* A pixel: all taps along each of the lines, then across them. */
static uint8_t blurred(const struct image *from, const struct stk_retouch *retouch, uint32_t y,
                       uint32_t x, uint32_t channel)
{
    const int32_t reach = (int32_t)retouch->reach;
    int32_t sum = 0;
    for (int32_t down = -reach; down <= reach; down++) {
        int32_t line = 0;
        for (int32_t along = -reach; along <= reach; along++)
            line += weight_of(retouch, along) *
                    at(from, stk_blur_reflect((int32_t)y + down, from->height),
                       stk_blur_reflect((int32_t)x + along, from->width))[channel];
        sum += weight_of(retouch, down) * stk_blur_keep(line);
    }
    return stk_blur_settle(sum);
}

static void blur(const struct stk_retouch *retouch, const struct image *from, struct image *to)
{
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++)
            for (uint32_t channel = 0; channel < to->channels; channel++)
                at(to, y, x)[channel] = blurred(from, retouch, y, x, channel);
}

/* Puts the crop, flipped and retouched, in place of the grid; the frame then shows all of it. */
static bool retouch_grid(const struct stk_transform_plan *plan, uint64_t epoch, uint64_t sample,
                         struct stk_frame *frame, struct image *grid)
{
    const struct stk_retouching *retouching = &plan->framing.retouch;
    const uint32_t height = plan->framing.out_height, width = plan->framing.out_width;
    struct image one, two = { 0 };
    struct stk_retouch retouch;
    struct stk_frame uncut = *frame;
    const bool made = image_make(&one, height, width, grid->channels) &&
                      image_make(&two, height, width, grid->channels);
    if (!made) {
        free(one.pixels);
        free(two.pixels);
        return false;
    }
    stk_retouch_draw(retouching, epoch, sample, &retouch);
    uncut.cut_bottom = 0;
    crop_and_flip(plan, &uncut, grid, &one);
    turn_image(plan, &retouch, &one, &two); /* by 0 degrees: a copy */
    color(retouching, &retouch, &two);
    free(grid->pixels);
    *grid = retouch.reach > 0 ? one : two;
    if (retouch.reach > 0)
        blur(&retouch, &two, &one);
    free(retouch.reach > 0 ? two.pixels : one.pixels);
    frame->y = frame->x = 0;
    frame->flip = 0;
    return true;
}

static void write_row(const struct stk_transform_plan *plan, const struct stk_frame *frame,
                      const struct image *grid, uint8_t *out)
{
    const uint32_t height = plan->framing.out_height, width = plan->framing.out_width;
    const size_t channels = plan->channels;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            const uint8_t *pixel = seen(plan, frame, grid, y, x);
            for (uint32_t channel = 0; channel < channels; channel++) {
                const size_t nhwc = ((size_t)y * width + x) * channels + channel;
                const size_t nchw = ((size_t)channel * height + y) * width + x;
                store_element(plan->convert, channel, pixel[channel], out,
                              plan->convert->layout == STOKER_LAYOUT_NCHW ? nchw : nhwc);
            }
        }
    }
}

bool stk_transform_row_reference(const struct stk_transform_plan *plan,
                                 const struct stk_image *image, uint64_t epoch, uint64_t sample,
                                 void *out)
{
    struct stk_frame frame;
    struct image part = { 0 }, narrow = { 0 }, grid = { 0 };
    const uint32_t channels = plan->channels;
    const bool is_part = image->eighths != 0;
    stk_frame_draw(&plan->framing, is_part ? image->whole_height : image->height,
                   is_part ? image->whole_width : image->width, epoch, sample, &frame);
    const struct side down = side_of(image, frame.top, frame.height);
    const struct side across = side_of(image, frame.left, frame.width);
    bool done = image_make(&part, down.pixels, across.pixels, channels) &&
                image_make(&narrow, down.pixels, frame.grid_width, channels) &&
                image_make(&grid, frame.grid_height, frame.grid_width, channels);
    if (done) {
        cut_out(image, &down, &across, &part);
        resample(&part, &across, &narrow, true);
        resample(&narrow, &down, &grid, false);
    }
    if (done && stk_retouching_any(&plan->framing.retouch))
        done = retouch_grid(plan, epoch, sample, &frame, &grid);
    if (done)
        write_row(plan, &frame, &grid, out);
    free(part.pixels);
    free(narrow.pixels);
    free(grid.pixels);
    return done;
}
