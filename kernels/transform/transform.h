/* transform.h - images as decoded become rows as trained on: resized, cropped, flipped,
 * painted over, converted.
 *
 *   image ──▶ frame: drawn ──┬─ resampled to the part that the output sees ─▶ scratch ──┐
 *                              └─ as it is ──────────────────────────────────────────────┴─▶
 *           ──▶ cropped, flipped, painted over, converted in one pass ──▶ row
 *
 * What is worked out once is the framing (what is asked for, checked), the convert plan of the
 * output's shape (convert.h), and the transform plan on top of them. Running a plan allocates
 * nothing; each thread has a scratch of its own. The result is defined to the bit: the same on
 * every CPU, and on a GPU (launch.h).
 */
#ifndef STK_KERNELS_TRANSFORM_H
#define STK_KERNELS_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/transform.h>

#include "kernels/convert/convert.h"
#include "kernels/transform/frame.h"
#include "kernels/transform/shuffle_tables.h"

enum {
    STK_TRANSFORM_WHY_BYTES = 160,
    STK_IMAGE_SLACK_BYTES = 16, /* readable behind a image's last byte: see stk_image */
    STK_LINE_ELEMENTS = 80,     /* a period of 16 x 4 channels, and a vector more */
    STK_FILL_BYTES = 48,        /* 32 from any channel on */
    STK_FILLED_BYTES = 48       /* a pixel of 4 floats, and 32 bytes more */
};

/* Whether anything is asked for. */
bool stk_transform_wanted(const stoker_transform *transform);

/* Whether images are resized, so that their sizes may differ. */
bool stk_transform_resizes(const stoker_transform *transform);

/* Check what is asked for, and work out the output's size. height and width are those of the
 * images; with any_size they are of any size, up to STOKER_SOURCE_SIDE_MAX.
 * STOKER_EINVAL: why names the option and tells the rule that it breaks. */
int stk_framing_init(struct stk_framing *framing, const stoker_transform *transform, uint64_t seed,
                     uint32_t height, uint32_t width, bool any_size,
                     char why[STK_TRANSFORM_WHY_BYTES]);

/* One image: height x width x channels bytes. */
struct stk_image {
    const uint8_t *pixels;
    uint32_t height, width;
    bool slack; /* STK_IMAGE_SLACK_BYTES more may be read behind it */
};

struct stk_transform_plan;

/* A image, and the output's place in it: what is left to do after resampling. */
struct stk_crop {
    const uint8_t *pixels;
    size_t stride_bytes; /* from line to line */
    int32_t height, width;
    int32_t y, x; /* of the output's first pixel; beside the image there is fill */
    bool flip;
    int32_t cut_top, cut_left, cut_bottom, cut_right; /* in the output */
    const uint8_t *later; /* the source of a later row, to be fetched meanwhile; or NULL */
    size_t later_bytes;
};

/* Write one row of plan->convert. */
typedef void stk_crop_fn(const struct stk_transform_plan *plan, const struct stk_crop *crop,
                         uint8_t *out);

/* One axis' taps of `count` output pixels from `from` on; four taps are a group. */
struct stk_tap_group {
    int16_t high[4], low[4]; /* weight = high x 2048 + low */
};
struct stk_axis {
    uint32_t in, out, from, count; /* what it was made for */
    uint32_t groups;               /* of each pixel */
    uint32_t *first;               /* [count] input pixel of the first tap */
    uint32_t *taps;                /* [count] taps that count; the rest of the groups are 0 */
    struct stk_tap_group *weights; /* [count x groups] */
};

/* Resample `lines` (1 or 2) lines of a image along the line; out has
 * axis->count x channels bytes for each, and STK_IMAGE_SLACK_BYTES more. */
typedef void stk_resize_lines_fn(const struct stk_axis *axis, uint32_t channels,
                                 const uint8_t *const in[2], uint8_t *const out[2]);

/* One line of the output from the lines that its taps name. */
typedef void stk_resize_column_fn(const struct stk_tap_group *weights, uint32_t taps,
                                  const uint8_t *const *lines, size_t bytes, uint8_t *out);

/* words[k] = stk_philox(key, epoch, samples[k]). */
typedef void stk_draw_fn(uint64_t key, uint64_t epoch, const uint64_t *samples, uint32_t count,
                         struct stk_random *words);

struct stk_transform_variant {
    const char *name;
    bool (*runs_here)(void);
    stk_draw_fn *draw_words;
    /* Never NULL for a valid plan. */
    stk_crop_fn *(*choose_crop)(const struct stk_convert_plan *convert, uint32_t channels);
    stk_resize_lines_fn *resize_lines;
    stk_resize_column_fn *resize_column;
};

enum { STK_TRANSFORM_VARIANTS_MAX = 3 };

/* Best first; the last is the baseline. Ends with a variant whose name is NULL. */
extern const struct stk_transform_variant stk_transform_variants[STK_TRANSFORM_VARIANTS_MAX + 1];

struct stk_transform_plan {
    struct stk_framing framing;
    const struct stk_convert_plan *convert; /* of out_height x out_width x channels */
    uint32_t channels;
    stk_draw_fn *draw_words;
    stk_crop_fn *crop;
    stk_resize_lines_fn *resize_lines;
    stk_resize_column_fn *resize_column;
    uint32_t height_max, width_max; /* of any image */
    uint8_t fill[STK_FILL_BYTES];   /* pixels of it, channels last */
    /* Fill as the output has it: whole pixels, or each channel for its plane. */
    uint32_t filled_planes, filled_bytes; /* how many, and the bytes after which it repeats */
    uint8_t filled[STOKER_TRANSFORM_CHANNELS_MAX][STK_FILLED_BYTES];
    /* For element i of a line, channels last: a period, and a vector more. */
    float factor[STK_LINE_ELEMENTS], bias[STK_LINE_ELEMENTS];
    stk_shuffles shuffles;
    stk_wide_shuffles wide_shuffles;
};

/* framing and fill are copied; convert, the plan for rows of the output's shape from uint8, must outlive the
 * plan. height_max and width_max bound every image that will come. STOKER_EINVAL,
 * STOKER_ETYPE (not from uint8, or more than 4 channels). Any thread. */
int stk_transform_plan_init(struct stk_transform_plan *plan, const struct stk_framing *framing,
                            const uint8_t fill[STOKER_TRANSFORM_CHANNELS_MAX],
                            const struct stk_convert_plan *convert, uint32_t channels,
                            uint32_t height_max, uint32_t width_max);

/* Let the plan run on that variant, which this CPU must be able to run: for tests. */
void stk_transform_plan_choose(struct stk_transform_plan *plan,
                               const struct stk_transform_variant *variant);

/* Bytes of the scratch that one thread needs, aligned to 64 and zeroed at first; >= 1. */
size_t stk_transform_scratch_bytes(const struct stk_transform_plan *plan);

/* Write sample `sample` of that epoch to out: one row of plan->convert. later: the image of a
 * row that is soon to come, or NULL. */
void stk_transform_row(const struct stk_transform_plan *plan, void *scratch,
                       const struct stk_image *image, uint64_t epoch, uint64_t sample,
                       const struct stk_image *later, void *out);

/* Write `count` rows of plan->convert to consecutive rows of out, from images of one size; samples: the number
 * of each. images[count .. count + ahead) are only fetched, to warm the next call. */
void stk_transform_rows(const struct stk_transform_plan *plan, void *scratch,
                        const void *const *images, uint32_t height, uint32_t width, uint32_t count,
                        uint32_t ahead, uint64_t epoch, const uint64_t *samples, void *out);

/* Resample a whole image to grid_height x grid_width bytes of pixels at out (uint8, and
 * STK_IMAGE_SLACK_BYTES of room behind): what RESIZE_EXACT does, for who keeps the result. */
void stk_transform_resize(const struct stk_transform_plan *plan, void *scratch,
                          const struct stk_image *image, uint8_t *out);

/* The same as stk_transform_row by its definition, one pixel at a time: the oracle of the tests.
 * Allocates; false = no memory. */
bool stk_transform_row_reference(const struct stk_transform_plan *plan,
                                 const struct stk_image *image, uint64_t epoch, uint64_t sample,
                                 void *out);

#endif
