/* launch.h - the transforms on a device: kernels by name, and their arguments.
 *
 *   images ──▶ stk_keep: kept for later batches, which gather from there
 *   rows of other fields ◀──▶ stk_rows: kept for later batches, or taken from there
 *   stk_rectangles: a random rectangle of each image, which the others use
 *   images ──▶ stk_taps: weights ──▶ stk_resize: uint8 ──┐
 *         └──────────────────────────────────────────────┴─▶ stk_crop_TYPE_LAYOUT ──▶ rows
 *
 * With rotation, colors or blur:
 *
 *   ─▶ stk_crop_u8_nhwc: bytes ─▶ stk_rotate ─▶ stk_gray: mean ─▶ stk_color ─▶ stk_blur_along ─▶ stk_blur_across
 *   ─▶ stk_crop_TYPE_LAYOUT ──▶ rows;       before them stk_retouch draws what is done to each image
 *
 * A kernel's only argument is a struct of plain data, by value, with device pointers. The device
 * draws, from the sample ids. Kernels and stk_transform_row() give the same bits.
 *
 * Compiled as C and by nvcc.
 */
#ifndef STK_KERNELS_TRANSFORM_LAUNCH_H
#define STK_KERNELS_TRANSFORM_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "kernels/transform/frame/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STK_LAUNCH_CHANNELS_MAX = 4,
    STK_LAUNCH_SAMPLES_MAX = 65535 /* blocks in y; with more samples a block takes several */
};

/* The part of an image that is resampled. */
struct stk_rectangle {
    uint32_t top, left, height, width;
};

/* An image of a batch whose images differ in size. */
struct stk_launch_source {
    uint64_t at; /* bytes from `images` to its own height x width x channels */
    uint32_t height, width;
};

/* The images and the draws: shared by all kernels of a batch. */
struct stk_launch_batch {
    struct stk_framing framing;
    uint64_t epoch;
    const uint64_t *ids;                     /* [count] sample ids */
    const uint8_t *images;                   /* height x width x channels bytes each, as decoded */
    const struct stk_launch_source *sources; /* [count] NULL = images of one size */
    uint32_t count;                          /* samples, >= 1 */
    uint32_t gather;                         /* 1: row k is image ids[k]; 0: image k */
    uint32_t height, width;                  /* size of an image; of sources: no side is longer */
    uint32_t channels;                       /* 1..4 */
    uint32_t taps_max;                /* weights per coordinate; see stk_launch_scratch_bytes() */
    struct stk_rectangle *rectangles; /* scratch: [count]; NULL = whole images */
    uint32_t *taps;                   /* scratch; NULL = no resizing */
    uint8_t *resized; /* scratch: out_height x out_width x channels bytes a sample */
};

/* Samples of a block of stk_rectangles, one a thread: few, to spread the work over the GPU. */
enum { STK_RECTANGLES_SAMPLES = 32 };

/* "stk_rectangles": draws the random rectangle of each sample. The only kernel that needs double
 * precision for it: GPUs for graphics have little. Comes before all others. */
struct stk_rectangles_launch {
    struct stk_launch_batch batch;
};

/* "stk_taps": computes the weights of each coordinate of each sample's output. */
struct stk_taps_launch {
    struct stk_launch_batch batch;
};

/* "stk_resize": resamples the visible part of each image. Comes after stk_taps. */
struct stk_resize_launch {
    struct stk_launch_batch batch;
};

/* "stk_keep": copies row k of images, if it is fresh, to image ids[k] of `kept`. */
struct stk_keep_launch {
    struct stk_launch_batch batch; /* its framing, epoch, gather and scratch are ignored */
    const uint8_t *fresh;          /* [count] 0 = images holds nothing there: not kept */
    uint8_t *kept;
};

/* A field's rows in a batch, and those of all samples; both at row_bytes, aligned to 8 bytes if
 * that is a multiple of 8. */
struct stk_rows_field {
    uint8_t *rows; /* [count] */
    uint8_t *kept;
    uint64_t row_bytes; /* >= 1 */
};

enum {
    STK_ROWS_FIELDS_MAX = 32,
    STK_ROWS_PIECE_BYTES = 65536 /* one block copies as much of a row */
};

/* "stk_rows": copies row k of each field, if it is fresh, to place ids[k] of `kept`; else from
 * there. */
struct stk_rows_launch {
    struct stk_launch_batch batch; /* only its ids and count are used */
    const uint8_t *fresh;          /* [count] 1 = the row is in the batch */
    uint32_t field_count;          /* 1..STK_ROWS_FIELDS_MAX */
    struct stk_rows_field fields[STK_ROWS_FIELDS_MAX];
};

/* "stk_crop_f32_nhwc" and so on: crop, flip, cutout, convert. Comes after stk_resize. */
struct stk_crop_launch {
    struct stk_launch_batch batch;
    void *out;              /* rows, aligned to 16 bytes */
    const uint64_t *places; /* [count] row of `out` that a sample becomes; NULL = its own number */
    float factor[STK_LAUNCH_CHANNELS_MAX], bias[STK_LAUNCH_CHANNELS_MAX]; /* unused for u8 */
    uint8_t fill[STK_LAUNCH_CHANNELS_MAX];
    uint32_t width_inverse, width_shift; /* see stk_crop_line() */
};

/* Returns pixel / out_width, for pixels below 2^31. */
STK_RNG uint32_t stk_crop_line(const struct stk_crop_launch *launch, uint32_t pixel)
{
    return (uint32_t)(((uint64_t)(2 * pixel) * launch->width_inverse) >> 32) >> launch->width_shift;
}

/* "stk_retouch", "stk_rotate", "stk_gray", "stk_color", "stk_blur_along", "stk_blur_across": what
 * retouch.h does to images of the output's size, channels last. All of it is scratch. */
struct stk_retouch_launch {
    struct stk_launch_batch batch; /* its images, gather, size and scratch are ignored */
    struct stk_retouch *drawn;     /* [count] */
    float *means;                  /* [count] average gray before the contrast */
    uint8_t *cropped;              /* [count] images */
    uint8_t *turned;               /* [count] images; NULL = no rotation */
    int16_t *lines;                /* [count] images, blurred along the lines; NULL = no blur */
    uint8_t fill[STK_LAUNCH_CHANNELS_MAX];
};

#ifdef __cplusplus
}
#else

#include "kernels/transform/transform.h"

/* All kernels; the last has a NULL name. */
extern const struct stk_kernel stk_kernels[];

/* Returns the kernel of that name, or NULL. */
const struct stk_kernel *stk_kernel_named(const char *name);

/* Returns the crop kernel of a plan's type and layout. */
const struct stk_kernel *stk_kernel_crop(const struct stk_transform_plan *plan);

/* Fills in what is the same for all batches of images of height x width. The caller sets epoch,
 * ids, images, count, gather, out, and rectangles, taps and resized if the plan needs them. */
void stk_launch_of(struct stk_crop_launch *launch, const struct stk_transform_plan *plan,
                   uint32_t height, uint32_t width);

/* Makes a launch that shows each image as it is take it as one line, which packs of any size divide
 * best. */
void stk_launch_take_as_lines(struct stk_crop_launch *launch);

/* Returns true if the launch needs stk_taps and stk_resize before its crop. */
bool stk_launch_resizes(const struct stk_launch_batch *batch);

enum { STK_LAUNCH_STEPS_MAX = 11 };

/* All launches that make a batch, in order. Points into itself: do not copy or move it. */
struct stk_launch_steps {
    /* stk_rectangles, stk_taps and stk_resize take it, too; crops to bytes, if images are
     * retouched */
    struct stk_crop_launch first;
    struct stk_retouch_launch retouch;
    struct stk_crop_launch last; /* writes the rows */
    uint32_t count;
    const struct stk_kernel *kernels[STK_LAUNCH_STEPS_MAX];
    const void *arguments[STK_LAUNCH_STEPS_MAX];
    size_t scratch_bytes; /* for samples_max; 0 = none */
};

/* Lists the launches for batches of up to samples_max images of height x width, or, with sources,
 * of up to this height and width. */
void stk_launch_steps_init(struct stk_launch_steps *steps, const struct stk_transform_plan *plan,
                           uint32_t height, uint32_t width, uint32_t samples_max);

/* Divides scratch_bytes of scratch, aligned to 256 bytes, among the launches. samples_max as
 * before. */
void stk_launch_steps_place(struct stk_launch_steps *steps, void *scratch, uint32_t samples_max);

/* One batch; pointers of the side that runs the kernels. */
struct stk_launch_rows {
    const void *images;
    bool gather;     /* row k is image ids[k]; else image k */
    const void *ids; /* [count] uint64_t */
    void *out;       /* rows, aligned to 16 bytes */
    uint32_t count;  /* 1..samples_max */
    uint64_t epoch;
    const void *sources; /* [count] struct stk_launch_source; NULL = images of one size */
    const void *places;  /* [count] uint64_t: the row that a sample becomes; NULL = its number */
};

/* Sets the arguments of all launches. */
void stk_launch_steps_take(struct stk_launch_steps *steps, const struct stk_launch_rows *rows);

/* Returns all kernels as a fatbin, or NULL in a build without nvcc. */
const void *stk_kernels_fatbin(size_t *bytes);
/* What it was compiled for. */
struct stk_fatbin_targets stk_kernels_targets(void);

#endif
#endif
