/* launch.h - the transforms on a device: kernels by name, and their arguments.
 *
 *   images ──▶ stk_keep: kept for later batches, which are gathered from there
 *   images ──▶ stk_taps: weights ──▶ stk_resize: uint8 ──┐
 *         └──────────────────────────────────────────────┴─▶ stk_crop_TYPE_LAYOUT ──▶ rows
 *
 * Each kernel takes one struct of plain data by value, this one and no other; pointers in it are
 * the device's. Draws are made on the device, from the sample ids. Each kernel has a host version in plain C
 * that takes the same struct with pointers of the host, so that all that leads up to a launch can
 * be tested without a GPU. Kernels, host kernels and stk_transform_row() give the same bits.
 *
 * Compiled by the C compiler and by nvcc alike.
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
    STK_LAUNCH_SAMPLES_MAX =
        65535 /* blocks in y: a block takes several samples if there are more */
};

/* Which images, and what is drawn for them: the same for all kernels of a batch. */
struct stk_launch_batch {
    struct stk_framing framing;
    uint64_t epoch;
    const uint64_t *ids;    /* [count] sample ids */
    const uint8_t *images;  /* height x width x channels bytes each, as decoded */
    uint32_t count;         /* samples, >= 1 */
    uint32_t gather;        /* 1: row k is image number ids[k]; 0: it is image number k */
    uint32_t height, width; /* of an image */
    uint32_t channels;      /* 1..4 */
    uint32_t taps_max;      /* weights kept for each coordinate; see stk_launch_scratch_bytes() */
    uint32_t *taps;         /* scratch; NULL = images are not resized */
    uint8_t *resized;       /* scratch: out_height x out_width x channels bytes a sample */
};

/* "stk_taps": the weights of each coordinate of each sample's output. */
struct stk_taps_launch {
    struct stk_launch_batch batch;
};

/* "stk_resize": what the output sees of its image, resampled. Comes after stk_taps. */
struct stk_resize_launch {
    struct stk_launch_batch batch;
};

/* "stk_keep": row k of images, where it is fresh, to the place of image number ids[k] in `kept`. */
struct stk_keep_launch {
    struct stk_launch_batch batch; /* its framing, epoch, gather and scratch are not looked at */
    const uint8_t *fresh;          /* [count] 0 = is not to be kept: images holds nothing there */
    uint8_t *kept;
};

/* "stk_crop_f32_nhwc" and so on: crop, flip, cutout, convert. Comes after stk_resize. */
struct stk_crop_launch {
    struct stk_launch_batch batch;
    void *out; /* rows, one after the other */
    float factor[STK_LAUNCH_CHANNELS_MAX], bias[STK_LAUNCH_CHANNELS_MAX]; /* unused for u8 */
    uint8_t fill[STK_LAUNCH_CHANNELS_MAX];
};

#ifdef __cplusplus
}
#else

#include "kernels/transform/transform.h"

/* All kernels; ends with one whose name is NULL. */
extern const struct stk_kernel stk_kernels[];

/* The kernel of that name, or NULL. */
const struct stk_kernel *stk_kernel_named(const char *name);

/* The crop kernel of a plan's type and layout. */
const struct stk_kernel *stk_kernel_crop(const struct stk_transform_plan *plan);

/* Fill in all that does not differ from batch to batch, for images of height x width: what is left
 * are epoch, ids, images, count, gather, out, and taps and resized if the plan resizes. */
void stk_launch_of(struct stk_crop_launch *launch, const struct stk_transform_plan *plan,
                   uint32_t height, uint32_t width);

/* Whether the launch needs stk_taps and stk_resize before its crop. */
bool stk_launch_resizes(const struct stk_launch_batch *batch);

/* Bytes of the scratch that taps and resized point to, for `count` samples; both start aligned to
 * 256. 0 and 0 if images are not resized. */
void stk_launch_scratch_bytes(const struct stk_launch_batch *batch, uint32_t count,
                              size_t *taps_bytes, size_t *resized_bytes);

/* All kernels as a fatbin (sm_80, sm_90, PTX); NULL in a build without nvcc. */
const void *stk_kernels_fatbin(size_t *bytes);

#endif
#endif
