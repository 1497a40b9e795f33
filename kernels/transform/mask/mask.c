/* mask.c - see mask.h. The source's line of each output line, and the column of each column, are
 * looked up once. */
#include "kernels/transform/mask/mask.h"

#include <string.h>

int stk_mask_plan_init(struct stk_mask_plan *plan, const struct stk_framing *framing,
                       uint32_t pixel_bytes, const void *fill)
{
    if (pixel_bytes < 1 || pixel_bytes > STK_MASK_PIXEL_BYTES_MAX)
        return STOKER_ELIMIT;
    *plan = (struct stk_mask_plan){ .framing = *framing, .pixel_bytes = pixel_bytes };
    memcpy(plan->fill, fill, pixel_bytes);
    return STOKER_OK;
}

size_t stk_mask_bytes(const struct stk_mask_plan *plan)
{
    return (size_t)plan->framing.out_height * plan->framing.out_width * plan->pixel_bytes;
}

size_t stk_mask_scratch_bytes(const struct stk_mask_plan *plan)
{
    return ((size_t)plan->framing.out_height + plan->framing.out_width) * sizeof(int32_t);
}

/* One mask on its way. */
struct job {
    const struct stk_mask_plan *plan;
    const uint8_t *pixels;
    uint32_t width; /* the source's, pixels */
    const int32_t *lines, *columns;
    struct stk_mask_frame drawn;
};

/* The compiler knows the size of the usual pixels. */
static inline void put_pixel(const struct job *job, int32_t line, int32_t column, uint8_t *out,
                             const uint32_t bytes)
{
    const uint8_t *from = job->plan->fill;
    if (line >= 0 && column >= 0)
        from = job->pixels + ((size_t)line * job->width + (size_t)column) * bytes;
    memcpy(out, from, bytes);
}

static inline void write_line(const struct job *job, uint32_t y, uint8_t *out, const uint32_t bytes)
{
    const struct stk_framing *framing = &job->plan->framing;
    const int32_t line = job->lines[y];
    for (uint32_t x = 0; x < framing->out_width; x++, out += bytes)
        put_pixel(job, stk_mask_is_cut(&job->drawn.frame, y, x) ? -1 : line, job->columns[x], out,
                  bytes);
}

static inline void turn_line(const struct job *job, uint32_t y, uint8_t *out, const uint32_t bytes)
{
    const struct stk_framing *framing = &job->plan->framing;
    const struct stk_rotation *turn = &job->drawn.rotation;
    int64_t at_y = turn->y + y * turn->y_by_y, at_x = turn->x + y * turn->x_by_y;
    for (uint32_t x = 0; x < framing->out_width; x++, out += bytes) {
        const uint32_t from_y = (uint32_t)stk_mask_pixel(at_y);
        const uint32_t from_x = (uint32_t)stk_mask_pixel(at_x);
        const bool inside = from_y < framing->out_height && from_x < framing->out_width &&
                            !stk_mask_is_cut(&job->drawn.frame, y, x);
        put_pixel(job, inside ? job->lines[from_y] : -1, inside ? job->columns[from_x] : -1, out,
                  bytes);
        at_y += turn->y_by_x;
        at_x += turn->x_by_x;
    }
}

static inline void write_lines(const struct job *job, uint8_t *out, const uint32_t bytes)
{
    const struct stk_framing *framing = &job->plan->framing;
    for (uint32_t y = 0; y < framing->out_height; y++, out += (size_t)framing->out_width * bytes) {
        if (framing->retouch.rotates != 0)
            turn_line(job, y, out, bytes);
        else
            write_line(job, y, out, bytes);
    }
}

void stk_mask_row(const struct stk_mask_plan *plan, void *scratch, const struct stk_image *mask,
                  uint64_t epoch, uint64_t sample, void *out)
{
    const struct stk_framing *framing = &plan->framing;
    int32_t *const lines = scratch, *const columns = lines + framing->out_height;
    struct job job = { .plan = plan,
                       .pixels = mask->pixels,
                       .width = mask->width,
                       .lines = lines,
                       .columns = columns };
    stk_mask_draw(framing, mask->height, mask->width, epoch, sample, &job.drawn);
    for (uint32_t y = 0; y < framing->out_height; y++)
        lines[y] = stk_mask_line(&job.drawn.frame, y);
    for (uint32_t x = 0; x < framing->out_width; x++)
        columns[x] = stk_mask_column(framing, &job.drawn.frame, x);
    if (plan->pixel_bytes == 1)
        write_lines(&job, out, 1);
    else if (plan->pixel_bytes == 2)
        write_lines(&job, out, 2);
    else if (plan->pixel_bytes == 4)
        write_lines(&job, out, 4);
    else
        write_lines(&job, out, plan->pixel_bytes);
}

void stk_mask_row_reference(const struct stk_mask_plan *plan, const struct stk_image *mask,
                            uint64_t epoch, uint64_t sample, void *out)
{
    const struct stk_framing *framing = &plan->framing;
    struct stk_mask_frame drawn = { 0 };
    uint8_t *to = out;
    stk_mask_draw(framing, mask->height, mask->width, epoch, sample, &drawn);
    for (uint32_t y = 0; y < framing->out_height; y++)
        for (uint32_t x = 0; x < framing->out_width; x++, to += plan->pixel_bytes) {
            const int64_t source = stk_mask_source(framing, &drawn, mask->width, y, x);
            memcpy(to, source < 0 ? plan->fill : mask->pixels + (size_t)source * plan->pixel_bytes,
                   plan->pixel_bytes);
        }
}
