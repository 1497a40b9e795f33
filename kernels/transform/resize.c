/* resize.c - see resize.h. */
#include "kernels/transform/resize.h"

#include <assert.h>
#include <string.h>

#include "kernels/transform/taps.h"

enum { ALIGNMENT = 64, RING_LINES_MORE = 2 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- memory --------------------------------------------------------------------- */

static uint32_t groups_of(uint32_t taps)
{
    return (taps + STK_TAPS_PER_GROUP - 1) / STK_TAPS_PER_GROUP;
}

/* The most that an axis can hold. */
struct axis_room {
    uint32_t count, groups;
};

static struct axis_room axis_room(const struct stk_framing *framing, uint32_t in_max,
                                  uint32_t resize, uint32_t out)
{
    const uint32_t side = framing->resizing == STK_RESIZE_SHORTER ? framing->resize_height : resize;
    const uint32_t count = framing->resizing == STK_RESIZE_EXACT && resize > out ? resize : out;
    return (struct axis_room){ count, groups_of(stk_taps_max(in_max, side)) };
}

static struct axis_room x_room(const struct stk_transform_plan *plan)
{
    return axis_room(&plan->framing, plan->width_max, plan->framing.resize_width,
                     plan->framing.out_width);
}

static struct axis_room y_room(const struct stk_transform_plan *plan)
{
    return axis_room(&plan->framing, plan->height_max, plan->framing.resize_height,
                     plan->framing.out_height);
}

static size_t axis_bytes(struct axis_room room)
{
    return 2 * aligned(room.count * sizeof(uint32_t)) +
           aligned((size_t)room.count * room.groups * sizeof(struct stk_tap_group));
}

static uint32_t ring_lines(struct axis_room y)
{
    return y.groups * STK_TAPS_PER_GROUP + RING_LINES_MORE;
}

static size_t ring_stride(const struct stk_transform_plan *plan, struct axis_room x)
{
    return aligned((size_t)x.count * plan->channels + STK_IMAGE_SLACK_BYTES);
}

static size_t copied_line_bytes(const struct stk_transform_plan *plan)
{
    return aligned((size_t)plan->width_max * plan->channels + STK_IMAGE_SLACK_BYTES);
}

size_t stk_resizer_bytes(const struct stk_transform_plan *plan)
{
    if (plan->framing.resizing == STK_RESIZE_NONE)
        return 0;
    const struct axis_room x = x_room(plan), y = y_room(plan);
    return axis_bytes(x) + axis_bytes(y) + ring_lines(y) * ring_stride(plan, x) +
           aligned(ring_lines(y) * sizeof(uint8_t *)) + 2 * copied_line_bytes(plan);
}

static uint8_t *carve_axis(struct stk_axis *axis, struct axis_room room, uint8_t *memory)
{
    axis->first = (uint32_t *)(void *)memory;
    memory += aligned(room.count * sizeof(uint32_t));
    axis->taps = (uint32_t *)(void *)memory;
    memory += aligned(room.count * sizeof(uint32_t));
    axis->weights = (struct stk_tap_group *)(void *)memory;
    return memory + aligned((size_t)room.count * room.groups * sizeof(struct stk_tap_group));
}

void stk_resizer_init(struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                      uint8_t *memory)
{
    const struct axis_room x = x_room(plan), y = y_room(plan);
    *resizer = (struct stk_resizer){ .ring_lines = ring_lines(y),
                                     .ring_stride_bytes = ring_stride(plan, x) };
    memory = carve_axis(&resizer->x, x, memory);
    memory = carve_axis(&resizer->y, y, memory);
    resizer->ring = memory;
    memory += resizer->ring_lines * resizer->ring_stride_bytes;
    resizer->lines = (const uint8_t **)(void *)memory;
    memory += aligned(resizer->ring_lines * sizeof(uint8_t *));
    resizer->copies[0] = memory;
    resizer->copies[1] = memory + copied_line_bytes(plan);
}

/* ---- taps ----------------------------------------------------------------------- */

static void put_weight(struct stk_tap_group *groups, uint32_t tap, int32_t weight)
{
    struct stk_tap_group *group = &groups[tap / STK_TAPS_PER_GROUP];
    group->high[tap % STK_TAPS_PER_GROUP] = (int16_t)(weight >> 11);
    group->low[tap % STK_TAPS_PER_GROUP] = (int16_t)(weight & 2047);
}

/* Rounds the taps of a pixel up to whole groups. If these would reach beyond the line, they begin earlier,
 * with taps of weight 0. */
static void make_pixel(struct stk_axis *axis, uint32_t i, const struct stk_taps *taps)
{
    const uint32_t width = axis->groups * STK_TAPS_PER_GROUP;
    const uint32_t last_first = axis->in > width ? axis->in - width : 0;
    const uint32_t first = taps->first < last_first ? taps->first : last_first;
    const uint32_t before = taps->first - first;
    struct stk_tap_group *groups = &axis->weights[(size_t)i * axis->groups];
    assert(before + taps->count <= width);
    memset(groups, 0, axis->groups * sizeof(*groups));
    for (uint32_t tap = 0; tap < taps->count; tap++)
        put_weight(groups, before + tap, stk_tap_weight(taps, tap));
    axis->first[i] = first;
    axis->taps[i] = before + taps->count;
}

/* Computes the axis, unless it is the previous image's. */
static void make_axis(struct stk_axis *axis, uint32_t in, uint32_t out, uint32_t from,
                      uint32_t count)
{
    if (axis->in == in && axis->out == out && axis->from == from && axis->count == count)
        return;
    axis->in = in;
    axis->out = out;
    axis->from = from;
    axis->count = count;
    axis->groups = groups_of(stk_taps_max(in, out));
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_taps taps = stk_taps_at(in, out, from + i);
        make_pixel(axis, i, &taps);
    }
}

/* ---- pixels --------------------------------------------------------------------- */

/* The rectangle that is read. */
struct reading {
    const uint8_t *pixels;
    size_t stride_bytes, line_bytes;
    uint32_t height;
    uint32_t copied_from; /* from this line on a vector may reach beyond the image's end */
};

static struct reading begin_reading(const struct stk_transform_plan *plan,
                                    const struct stk_image *image, const struct stk_frame *frame)
{
    const size_t stride = (size_t)image->width * plan->channels;
    const uint32_t near_end = (uint32_t)(STK_IMAGE_SLACK_BYTES / stride + 1);
    const uint32_t behind =
        image->height - frame->top; /* lines, including those below the rectangle */
    return (struct reading){
        .pixels = image->pixels + frame->top * stride + (size_t)frame->left * plan->channels,
        .stride_bytes = stride,
        .line_bytes = (size_t)frame->width * plan->channels,
        .height = frame->height,
        .copied_from = image->slack        ? UINT32_MAX
                       : behind > near_end ? behind - near_end
                                           : 0,
    };
}

/* second: the second of the two lines that are read together. */
static const uint8_t *line_at(const struct stk_resizer *resizer, const struct reading *reading,
                              uint32_t line, bool second)
{
    const uint8_t *pixels = reading->pixels + line * reading->stride_bytes;
    if (line < reading->copied_from)
        return pixels;
    return memcpy(resizer->copies[second], pixels, reading->line_bytes);
}

static uint8_t *ring_at(const struct stk_resizer *resizer, uint32_t line)
{
    return resizer->ring + line % resizer->ring_lines * resizer->ring_stride_bytes;
}

/* Resamples two lines into the ring; an odd last line is resampled twice. */
static void read_two(const struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                     const struct reading *reading, uint32_t line)
{
    const uint8_t *const first = line_at(resizer, reading, line, false);
    const uint8_t *const in[2] = { first, line + 1 < reading->height
                                              ? line_at(resizer, reading, line + 1, true)
                                              : first };
    uint8_t *const out[2] = { ring_at(resizer, line), ring_at(resizer, line + 1) };
    plan->resize_lines(&resizer->x, plan->channels, in, out);
}

void stk_resizer_run(struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                     const struct stk_image *image, const struct stk_frame *frame,
                     const struct stk_window *window, uint8_t *out)
{
    make_axis(&resizer->x, frame->width, frame->grid_width, window->left, window->width);
    make_axis(&resizer->y, frame->height, frame->grid_height, window->top, window->height);
    const struct reading reading = begin_reading(plan, image, frame);
    const struct stk_axis *y = &resizer->y;
    const size_t line_bytes = (size_t)window->width * plan->channels;
    uint32_t next = y->first[0];
    for (uint32_t i = 0; i < window->height; i++) {
        const uint32_t first = y->first[i], taps = y->taps[i];
        for (; next < first + taps; next += 2)
            read_two(resizer, plan, &reading, next);
        for (uint32_t tap = 0; tap < taps; tap++)
            resizer->lines[tap] = ring_at(resizer, first + tap);
        plan->resize_column(&y->weights[(size_t)i * y->groups], taps, resizer->lines, line_bytes,
                            out + i * line_bytes);
    }
}
