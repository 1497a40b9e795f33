/* launch_steps.c - lists the launches that make a batch and divides their scratch (launch.h). */
#include "kernels/transform/gpu/launch.h"

#include <assert.h>

enum { ALIGNMENT = 256 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- scratch -------------------------------------------------------------------- */

/* Where each array lies, in bytes; an array that is not needed has no bytes. */
struct layout {
    size_t rectangles, taps, resized, drawn, means, cropped, turned, lines, end;
};

static struct layout layout_of(const struct stk_launch_steps *steps, uint32_t samples)
{
    const struct stk_launch_batch *batch = &steps->first.batch;
    const struct stk_framing *framing = &batch->framing;
    const struct stk_retouching *retouching = &steps->retouch.batch.framing.retouch;
    const size_t pixels = (size_t)samples * framing->out_height * framing->out_width;
    const size_t image_bytes = aligned(pixels * batch->channels);
    const size_t coordinates = (size_t)samples * (framing->out_height + framing->out_width);
    const bool resizes = stk_launch_resizes(batch), retouches = stk_retouching_any(retouching);
    const bool draws = framing->resizing == STK_RESIZE_RANDOM;
    struct layout at = { .rectangles = 0 };
    at.taps = at.rectangles + (draws ? aligned(samples * sizeof(struct stk_rectangle)) : 0);
    at.resized = at.taps + (resizes ? aligned(coordinates * (2 + (size_t)batch->taps_max) * 4) : 0);
    at.drawn = at.resized + (resizes ? image_bytes : 0);
    at.means = at.drawn + (retouches ? aligned(samples * sizeof(struct stk_retouch)) : 0);
    at.cropped = at.means + (retouches ? aligned(samples * sizeof(float)) : 0);
    at.turned = at.cropped + (retouches ? image_bytes : 0);
    at.lines = at.turned + (retouching->rotates != 0 ? image_bytes : 0);
    at.end = at.lines + (retouching->blur != 0 ? 2 * image_bytes : 0);
    return at;
}

/* ---- launches ------------------------------------------------------------------- */

static void add_launch(struct stk_launch_steps *steps, const struct stk_kernel *kernel,
                       const void *arguments)
{
    assert(kernel != NULL);
    assert(steps->count < STK_LAUNCH_STEPS_MAX);
    steps->kernels[steps->count] = kernel;
    steps->arguments[steps->count++] = arguments;
}

static void add_retouching(struct stk_launch_steps *steps)
{
    const struct stk_retouching *retouching = &steps->retouch.batch.framing.retouch;
    const bool contrasts = (retouching->colors >> STK_COLOR_CONTRAST & 1) != 0;
    const struct {
        const char *name;
        bool wanted;
    } all[] = {
        { "stk_crop_u8_nhwc", true },
        { "stk_retouch", true },
        { "stk_rotate", retouching->rotates != 0 },
        { "stk_gray", contrasts },
        { "stk_color", retouching->colors != 0 },
        { "stk_blur_along", retouching->blur != 0 },
        { "stk_blur_across", retouching->blur != 0 },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].wanted)
            add_launch(steps, stk_kernel_named(all[i].name),
                       i == 0 ? (const void *)&steps->first : (const void *)&steps->retouch);
}

/* The first crop does all but the cutout; the last one only the cutout and the conversion. */
static void divide(struct stk_launch_steps *steps, const struct stk_transform_plan *plan)
{
    struct stk_launch_batch *const first = &steps->first.batch, *const last = &steps->last.batch;
    steps->retouch.batch = *first;
    for (uint32_t channel = 0; channel < STK_LAUNCH_CHANNELS_MAX; channel++)
        steps->retouch.fill[channel] = steps->first.fill[channel];
    stk_launch_of(&steps->last, plan, plan->framing.out_height, plan->framing.out_width);
    last->taps_max = 0;
    last->framing.resizing = STK_RESIZE_NONE;
    last->framing.cropping = STK_CROP_NONE;
    last->framing.flip = 0;
    first->framing.cutout = 0;
}

void stk_launch_steps_init(struct stk_launch_steps *steps, const struct stk_transform_plan *plan,
                           uint32_t height, uint32_t width, uint32_t samples_max)
{
    const bool retouches = stk_retouching_any(&plan->framing.retouch);
    *steps = (struct stk_launch_steps){ .count = 0 };
    stk_launch_of(&steps->first, plan, height, width);
    if (plan->framing.resizing == STK_RESIZE_RANDOM)
        add_launch(steps, stk_kernel_named("stk_rectangles"), &steps->first);
    if (stk_launch_resizes(&steps->first.batch)) {
        add_launch(steps, stk_kernel_named("stk_taps"), &steps->first);
        add_launch(steps, stk_kernel_named("stk_resize"), &steps->first);
    }
    if (retouches) {
        divide(steps, plan);
        add_retouching(steps);
    }
    stk_launch_take_as_lines(&steps->first);
    if (retouches)
        stk_launch_take_as_lines(&steps->last);
    add_launch(steps, stk_kernel_crop(plan), retouches ? &steps->last : &steps->first);
    steps->scratch_bytes = layout_of(steps, samples_max).end;
}

void stk_launch_steps_place(struct stk_launch_steps *steps, void *scratch, uint32_t samples_max)
{
    const struct layout at = layout_of(steps, samples_max);
    const struct stk_retouching *retouching = &steps->retouch.batch.framing.retouch;
    struct stk_retouch_launch *const retouch = &steps->retouch;
    uint8_t *const bytes = scratch;
    if (steps->first.batch.framing.resizing == STK_RESIZE_RANDOM)
        steps->first.batch.rectangles = (struct stk_rectangle *)(void *)(bytes + at.rectangles);
    if (stk_launch_resizes(&steps->first.batch)) {
        steps->first.batch.taps = (uint32_t *)(void *)(bytes + at.taps);
        steps->first.batch.resized = bytes + at.resized;
    }
    if (!stk_retouching_any(retouching))
        return;
    retouch->drawn = (struct stk_retouch *)(void *)(bytes + at.drawn);
    retouch->means = (float *)(void *)(bytes + at.means);
    retouch->cropped = bytes + at.cropped;
    retouch->turned = retouching->rotates != 0 ? bytes + at.turned : NULL;
    retouch->lines = retouching->blur != 0 ? (int16_t *)(void *)(bytes + at.lines) : NULL;
    steps->first.out = retouch->cropped;
    steps->last.batch.images = retouch->turned != NULL ? retouch->turned : retouch->cropped;
}

static void take_rows(struct stk_launch_batch *batch, const struct stk_launch_rows *rows)
{
    batch->ids = rows->ids;
    batch->count = rows->count;
    batch->epoch = rows->epoch;
}

void stk_launch_steps_take(struct stk_launch_steps *steps, const struct stk_launch_rows *rows)
{
    const bool retouches = stk_retouching_any(&steps->retouch.batch.framing.retouch);
    take_rows(&steps->first.batch, rows);
    take_rows(&steps->retouch.batch, rows);
    take_rows(&steps->last.batch, rows);
    steps->first.batch.images = rows->images;
    steps->first.batch.sources = rows->sources;
    steps->first.batch.gather = rows->gather ? 1 : 0;
    struct stk_crop_launch *const crop = retouches ? &steps->last : &steps->first;
    crop->out = rows->out;
    crop->places = rows->places;
}
