/* resize.c - see resize.h. */
#include "kernels/transform/resize/resize.h"

#include <assert.h>
#include <string.h>

#include "kernels/transform/resize/taps.h"

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

/* A line that holds a stretch: all pixels that show a part of it. */
struct line {
    int64_t first;       /* its first pixel, in stored pixels */
    double offset, size; /* the stretch, in pixels from there */
    uint32_t pixels;
    uint32_t groups; /* groups of taps per output pixel */
};

/* Eighths are exact in doubles. */
static struct line line_of(const struct stk_stretch *stretch)
{
    struct line line;
    line.first = stretch->start >= 0 ? stretch->start / 8 : -((7 - stretch->start) / 8);
    const uint32_t offset = (uint32_t)(stretch->start - 8 * line.first);
    line.offset = (double)offset / 8.0;
    line.size = (double)stretch->size / 8.0;
    line.pixels = (offset + stretch->size + 7) / 8;
    line.groups = groups_of(stk_taps_max(line.pixels, stretch->out));
    return line;
}

/* The taps of a pixel are rounded up to whole groups. If these would reach beyond the line, they
 * begin earlier, with taps of weight 0. */
static uint32_t first_read(const struct line *line, const struct stk_taps *taps)
{
    const uint32_t width = line->groups * STK_TAPS_PER_GROUP;
    const uint32_t last_first = line->pixels > width ? line->pixels - width : 0;
    return taps->first < last_first ? taps->first : last_first;
}

static struct stk_taps taps_of(const struct line *line, uint32_t out, uint32_t at)
{
    return stk_taps_within(line->offset, line->size, line->pixels, out, at);
}

static void make_pixel(struct stk_axis *axis, const struct line *line, uint32_t i,
                       const struct stk_taps *taps)
{
    const uint32_t first = first_read(line, taps);
    const uint32_t before = taps->first - first;
    struct stk_tap_group *groups = &axis->weights[(size_t)i * axis->groups];
    assert(before + taps->count <= axis->groups * STK_TAPS_PER_GROUP);
    memset(groups, 0, axis->groups * sizeof(*groups));
    for (uint32_t tap = 0; tap < taps->count; tap++)
        put_weight(groups, before + tap, stk_tap_weight(taps, tap));
    assert(line->first + first >= 0);
    axis->first[i] = (uint32_t)(line->first + first);
    axis->taps[i] = before + taps->count;
}

static bool is_made_for(const struct stk_axis *axis, const struct stk_stretch *stretch)
{
    const struct stk_stretch *made = &axis->made_for;
    return made->start == stretch->start && made->size == stretch->size &&
           made->out == stretch->out && made->from == stretch->from &&
           made->count == stretch->count;
}

/* Computes the axis, unless it is the previous image's. */
static void make_axis(struct stk_axis *axis, const struct stk_stretch *stretch)
{
    if (is_made_for(axis, stretch))
        return;
    const struct line line = line_of(stretch);
    axis->made_for = *stretch;
    axis->count = stretch->count;
    axis->groups = line.groups;
    for (uint32_t i = 0; i < stretch->count; i++) {
        const struct stk_taps taps = taps_of(&line, stretch->out, stretch->from + i);
        make_pixel(axis, &line, i, &taps);
    }
}

struct stk_pixel_range stk_resizer_needs(uint32_t at, uint32_t size, uint32_t eighths, uint32_t out,
                                         uint32_t from, uint32_t count)
{
    const struct stk_stretch stretch = { (int64_t)at * eighths, size * eighths, out, from, count };
    const struct line line = line_of(&stretch);
    const struct stk_taps first = taps_of(&line, out, from);
    const struct stk_taps last = taps_of(&line, out, from + count - 1);
    const uint32_t end = first_read(&line, &last) + line.groups * STK_TAPS_PER_GROUP;
    return (struct stk_pixel_range){
        (uint32_t)line.first + first_read(&line, &first),
        (uint32_t)line.first + (end < line.pixels ? end : line.pixels),
    };
}

/* ---- pixels --------------------------------------------------------------------- */

/* The image that is read. */
struct reading {
    const uint8_t *pixels;
    size_t stride_bytes;
    uint32_t height;
    uint32_t copied_from; /* from this line on a vector may reach beyond the image's end */
};

static struct reading begin_reading(const struct stk_transform_plan *plan,
                                    const struct stk_image *image)
{
    const size_t stride = (size_t)image->width * plan->channels;
    const uint32_t near_end = (uint32_t)(STK_IMAGE_SLACK_BYTES / stride + 1);
    return (struct reading){
        .pixels = image->pixels,
        .stride_bytes = stride,
        .height = image->height,
        .copied_from = image->slack               ? UINT32_MAX
                       : image->height > near_end ? image->height - near_end
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
    return memcpy(resizer->copies[second], pixels, reading->stride_bytes);
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
    const uint32_t eighths = image->eighths == 0 ? 8 : image->eighths;
    const struct stk_stretch along = { (int64_t)frame->left * eighths - 8 * (int64_t)image->x,
                                       frame->width * eighths, frame->grid_width, window->left,
                                       window->width };
    const struct stk_stretch across = { (int64_t)frame->top * eighths - 8 * (int64_t)image->y,
                                        frame->height * eighths, frame->grid_height, window->top,
                                        window->height };
    make_axis(&resizer->x, &along);
    make_axis(&resizer->y, &across);
    const struct reading reading = begin_reading(plan, image);
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
