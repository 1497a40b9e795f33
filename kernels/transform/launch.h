/* launch.h - the transforms on a device: kernels by name, and their arguments.
 *
 *   images ──▶ stk_keep: kept for later batches, which gather from there
 *   images ──▶ stk_taps: weights ──▶ stk_resize: uint8 ──┐
 *         └──────────────────────────────────────────────┴─▶ stk_crop_TYPE_LAYOUT ──▶ rows
 *
 * A kernel's only argument is a struct of plain data, by value, with device pointers. The device draws, from
 * the sample ids. A kernel's host version in plain C takes the same struct with host pointers, so that launches
 * can be tested without a GPU. Kernels, host kernels and stk_transform_row() give the same bits.
 *
 * Compiled as C and by nvcc.
 */
#ifndef STK_KERNELS_TRANSFORM_LAUNCH_H
#define STK_KERNELS_TRANSFORM_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "kernels/transform/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STK_LAUNCH_CHANNELS_MAX = 4,
    STK_LAUNCH_SAMPLES_MAX = 65535 /* blocks in y; with more samples a block takes several */
};

/* The images and the draws: shared by all kernels of a batch. */
struct stk_launch_batch {
    struct stk_framing framing;
    uint64_t epoch;
    const uint64_t *ids;    /* [count] sample ids */
    const uint8_t *images;  /* height x width x channels bytes each, as decoded */
    uint32_t count;         /* samples, >= 1 */
    uint32_t gather;        /* 1: row k is image ids[k]; 0: image k */
    uint32_t height, width; /* size of an image */
    uint32_t channels;      /* 1..4 */
    uint32_t taps_max;      /* weights per coordinate; see stk_launch_scratch_bytes() */
    uint32_t *taps;         /* scratch; NULL = no resizing */
    uint8_t *resized;       /* scratch: out_height x out_width x channels bytes a sample */
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

/* "stk_crop_f32_nhwc" and so on: crop, flip, cutout, convert. Comes after stk_resize. */
struct stk_crop_launch {
    struct stk_launch_batch batch;
    void *out;                                                            /* consecutive rows */
    float factor[STK_LAUNCH_CHANNELS_MAX], bias[STK_LAUNCH_CHANNELS_MAX]; /* unused for u8 */
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

/* Fills in what is the same for all batches of images of height x width. The caller sets epoch, ids,
 * images, count, gather, out, and taps and resized if the plan resizes. */
void stk_launch_of(struct stk_crop_launch *launch, const struct stk_transform_plan *plan,
                   uint32_t height, uint32_t width);

/* Returns true if the launch needs stk_taps and stk_resize before its crop. */
bool stk_launch_resizes(const struct stk_launch_batch *batch);

/* Bytes of the scratch that taps and resized point to, for `count` samples; both aligned to 256 bytes.
 * 0 and 0 without resizing. */
void stk_launch_scratch_bytes(const struct stk_launch_batch *batch, uint32_t count,
                              size_t *taps_bytes, size_t *resized_bytes);

/* Returns all kernels as a fatbin (sm_80, sm_90, PTX), or NULL in a build without nvcc. */
const void *stk_kernels_fatbin(size_t *bytes);

#endif
#endif
