/* transform.h - turns decoded images into rows as trained on: resized, cropped, flipped,
 * cut out, converted.
 *
 *   image ──▶ frame: drawn ──┬─ its visible part resampled ──────────────▶ scratch ──┐
 *                            └─ as it is ────────────────────────────────────────────┴─▶
 *         ──▶ cropped, flipped, cut out, converted in one pass ──▶ row
 *
 * With rotation, colors or blur (retouch.h) the last line becomes two passes:
 *
 *         ──▶ cropped, flipped ─▶ bytes ─▶ rotated, colored, blurred ─▶ cut out, converted ──▶ row
 *
 * Made once: the framing (the checked options), the convert plan of the output's shape (convert.h),
 * and the transform plan on top of them. Running a plan allocates nothing; each thread has its own
 * scratch. The result is defined to the bit: the same on every CPU and on a GPU (launch.h).
 */
#ifndef STK_KERNELS_TRANSFORM_H
#define STK_KERNELS_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <stoker/transform.h>

#include "kernels/convert/convert.h"
#include "kernels/transform/crop/shuffle_tables.h"
#include "kernels/transform/frame/frame.h"

enum {
    STK_TRANSFORM_WHY_BYTES = 160,
    STK_IMAGE_SLACK_BYTES = 16, /* readable behind an image's last byte: see stk_image */
    STK_LINE_ELEMENTS = 80,     /* a period of 16 x 4 channels and a vector more */
    STK_FILL_BYTES = 256,       /* a line of 64 pixels */
    STK_FILLED_BYTES = 48       /* a pixel of 4 floats and 32 bytes more */
};

/* Returns true if any transform is requested. */
bool stk_transform_wanted(const stoker_transform *transform);

/* Returns true if area, ratio or sigma are given, although perhaps nothing uses them. */
bool stk_transform_has_ranges(const stoker_transform *transform);

/* Returns true if images are resized, so that their sizes may differ. */
bool stk_transform_resizes(const stoker_transform *transform);

/* Checks the options and computes the output's size. height and width are the images'; with
 * any_size images have any size up to STOKER_SOURCE_SIDE_MAX. On STOKER_EINVAL, why names the
 * option and the rule that it breaks. */
int stk_framing_init(struct stk_framing *framing, const stoker_transform *transform, uint64_t seed,
                     uint32_t height, uint32_t width, bool any_size,
                     char why[STK_TRANSFORM_WHY_BYTES]);

/* One image, or a part of one: height x width x channels bytes. */
struct stk_image {
    const uint8_t *pixels;
    uint32_t height, width;
    bool slack; /* STK_IMAGE_SLACK_BYTES behind it are readable */
    /* Set if the pixels are a part of an image; eighths is 0 if they are the whole image. */
    uint32_t whole_height, whole_width; /* the image's own size */
    uint32_t y, x;                      /* the part's first pixel, in pixels of the scaled image */
    uint32_t eighths;                   /* 1..8: the image was scaled by eighths / 8 */
};

struct stk_transform_plan;

/* An image and the output's position in it: what is left to do after resampling. */
struct stk_crop {
    const uint8_t *pixels;
    size_t stride_bytes; /* between two lines */
    int32_t height, width;
    int32_t y, x; /* position of the output's first pixel; fill lies outside the image */
    bool flip;
    int32_t cut_top, cut_left, cut_bottom, cut_right; /* in the output */
    const uint8_t *later; /* source of a later row, to be prefetched; or NULL */
    size_t later_bytes;
};

/* Writes one row of plan->convert. */
typedef void stk_crop_fn(const struct stk_transform_plan *plan, const struct stk_crop *crop,
                         uint8_t *out);

struct stk_tap_group {
    int16_t high[4], low[4]; /* weight = high x 2048 + low */
};

/* One axis of a resize: `size` eighths of a pixel, starting at `start`, become `out` pixels, of
 * which [from, from + count) are wanted. */
struct stk_stretch {
    int64_t start; /* eighths, in the stored pixels; < 0 if these begin later */
    uint32_t size; /* eighths */
    uint32_t out, from, count;
};

/* The taps of an axis, in groups of four. */
struct stk_axis {
    struct stk_stretch made_for;
    uint32_t count;                /* made_for.count */
    uint32_t groups;               /* groups per pixel */
    uint32_t *first;               /* [count] input pixel of the first tap */
    uint32_t *taps;                /* [count] number of taps; the rest of their groups is 0 */
    struct stk_tap_group *weights; /* [count x groups] */
};

/* Resamples two lines of an image along the line. Each out has axis->count x channels bytes and
 * STK_IMAGE_SLACK_BYTES more. */
typedef void stk_resize_lines_fn(const struct stk_axis *axis, uint32_t channels,
                                 const uint8_t *const in[2], uint8_t *const out[2]);

/* Makes one line of the output from the lines of its taps. */
typedef void stk_resize_column_fn(const struct stk_tap_group *weights, uint32_t taps,
                                  const uint8_t *const *lines, size_t bytes, uint8_t *out);

/* words[k] = stk_philox(key, epoch, samples[k]). */
typedef void stk_draw_fn(uint64_t key, uint64_t epoch, const uint64_t *samples, uint32_t count,
                         struct stk_random *words);

/* Color steps in the order in which they are applied; amount: by step. */
struct stk_colors {
    uint32_t count;
    uint8_t steps[STK_COLOR_STEPS];
    float amount[STK_COLOR_STEPS];
    float mean; /* average gray, for the contrast */
};

/* Applies color steps to `count` pixels, in place. */
typedef void stk_color_fn(const struct stk_colors *colors, uint8_t *pixels, size_t count,
                          uint32_t channels);

/* Returns the sum of the gray of `count` pixels after the steps. */
typedef uint64_t stk_gray_fn(const struct stk_colors *colors, const uint8_t *pixels, size_t count,
                             uint32_t channels);

/* Sums 2 x reach + 1 lines of `count` elements, weights[0] in the middle: along the lines to out16,
 * or across them to out8; the other is NULL. */
typedef void stk_blur_fn(const int16_t *const *lines, const int32_t *weights, uint32_t reach,
                         size_t count, int16_t *out16, uint8_t *out8);

struct stk_transform_variant {
    const char *name;
    bool (*runs_here)(void);
    stk_draw_fn *draw_words;
    /* Never NULL for a valid plan. */
    stk_crop_fn *(*choose_crop)(const struct stk_convert_plan *convert, uint32_t channels);
    stk_resize_lines_fn *resize_lines;
    stk_resize_column_fn *resize_column;
    stk_color_fn *color;
    stk_gray_fn *gray;
    stk_blur_fn *blur;
};

enum { STK_TRANSFORM_VARIANTS_MAX = 3 };

/* Best first; the last is the baseline. Ends with a variant whose name is NULL. */
extern const struct stk_transform_variant stk_transform_variants[STK_TRANSFORM_VARIANTS_MAX + 1];

struct stk_transform_plan {
    struct stk_framing framing;
    const struct stk_convert_plan *convert; /* for out_height x out_width x channels */
    uint32_t channels;
    stk_draw_fn *draw_words;
    stk_crop_fn *crop;
    stk_resize_lines_fn *resize_lines;
    stk_resize_column_fn *resize_column;
    stk_color_fn *color;
    stk_gray_fn *gray;
    stk_blur_fn *blur;
    uint32_t height_max, width_max; /* largest source image */
    uint8_t fill[STK_FILL_BYTES];   /* a line of it, channels last */
    /* Fill as the output has it: whole pixels, or one channel per plane. */
    uint32_t filled_planes, filled_bytes; /* number of planes; bytes after which fill repeats */
    uint8_t filled[STOKER_TRANSFORM_CHANNELS_MAX][STK_FILLED_BYTES];
    /* For element i of a line, channels last; one period and a vector beyond it. */
    float factor[STK_LINE_ELEMENTS], bias[STK_LINE_ELEMENTS];
    stk_shuffles shuffles;
};

/* framing and fill are copied; convert, the plan for rows of the output's shape from uint8, must
 * outlive the plan. No image may exceed height_max x width_max. Returns STOKER_EINVAL (shapes do
 * not match) or STOKER_ETYPE (not from uint8, or more than 4 channels). Any thread. */
int stk_transform_plan_init(struct stk_transform_plan *plan, const struct stk_framing *framing,
                            const uint8_t fill[STOKER_TRANSFORM_CHANNELS_MAX],
                            const struct stk_convert_plan *convert, uint32_t channels,
                            uint32_t height_max, uint32_t width_max);

/* Selects a variant, which this CPU must be able to run. For tests. */
void stk_transform_plan_choose(struct stk_transform_plan *plan,
                               const struct stk_transform_variant *variant);

/* Bytes of the scratch of one thread, >= 1. The caller zeroes it and aligns it to 64 bytes. */
size_t stk_transform_scratch_bytes(const struct stk_transform_plan *plan);

/* Writes a sample of an epoch to out as one row of plan->convert. later: the image of a later row,
 * to be prefetched, or NULL. */
void stk_transform_row(const struct stk_transform_plan *plan, void *scratch,
                       const struct stk_image *image, uint64_t epoch, uint64_t sample,
                       const struct stk_image *later, void *out);

/* Writes `count` consecutive rows of plan->convert to out, from images of one size; samples: their
 * numbers. images[count .. count + ahead) are only prefetched, to warm the next call. */
void stk_transform_rows(const struct stk_transform_plan *plan, void *scratch,
                        const void *const *images, uint32_t height, uint32_t width, uint32_t count,
                        uint32_t ahead, uint64_t epoch, const uint64_t *samples, void *out);

/* Resamples a whole image to resize_height x resize_width pixels of uint8 at out, which has
 * STK_IMAGE_SLACK_BYTES more: RESIZE_EXACT, for a caller that keeps the result. */
void stk_transform_resize(const struct stk_transform_plan *plan, void *scratch,
                          const struct stk_image *image, uint8_t *out);

/* Finds the part of an image of height x width that stk_transform_row needs, in pixels of the
 * image, and the smallest scale that will do, for a codec's decode(). */
void stk_transform_region(const struct stk_transform_plan *plan, uint32_t height, uint32_t width,
                          uint64_t epoch, uint64_t sample, stoker_region *out);

/* The same for stk_transform_resize: all of it. */
void stk_transform_resize_region(const struct stk_transform_plan *plan, uint32_t height,
                                 uint32_t width, stoker_region *out);

/* Does what stk_transform_row does by its definition, one pixel at a time: the tests' reference.
 * Allocates; returns false if memory runs out. */
bool stk_transform_row_reference(const struct stk_transform_plan *plan,
                                 const struct stk_image *image, uint64_t epoch, uint64_t sample,
                                 void *out);

#endif
