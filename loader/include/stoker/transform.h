/* stoker/transform.h - resize, crop and augment images after they are decoded.
 *
 *   decoded ─▶ one of resize, resize_shorter, random_resized_crop
 *           ─▶ one of center_crop, random_crop
 *           ─▶ flip ─▶ rotate ─▶ brightness, contrast, saturation, hue in random order
 *           ─▶ blur ─▶ cutout ─▶ type, scale, mean and std, layout (stoker/options.h)
 *
 * The order of the steps is fixed; steps that are not set are skipped. Images are uint8, channels
 * last, with 1 to 4 channels.
 *
 * Random draws are a pure function of (seed, epoch, sample id): the pixels do not depend on the
 * number of threads or on the device. Resizing matches Pillow's BILINEAR to within one level: when
 * it shrinks an image, it averages all source pixels. A fourth channel is resized like the others;
 * colors are not multiplied by alpha.
 *
 * Color changes match torchvision's ColorJitter on uint8 tensors to within one level. Each change
 * that is set is applied once, in an order drawn per image, and truncated to whole levels. With 3
 * or 4 channels the first three are red, green and blue. With 1 or 2 channels the first is gray,
 * and saturation and hue have no effect. The second of 2 channels and the fourth of 4 never change.
 * Blur matches torchvision's GaussianBlur to within one level.
 */
#ifndef STOKER_TRANSFORM_H
#define STOKER_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_TRANSFORM_CHANNELS_MAX = 4,
    STOKER_TRANSFORM_SIDE_MAX = 16384, /* longest side of an output, pixels */
    STOKER_SOURCE_SIDE_MAX = 65535,    /* longest side of an image to be resized, pixels */
    STOKER_BLUR_MAX = 63               /* longest side of a blur's kernel, pixels */
};

typedef struct stoker_size {
    uint32_t height, width; /* pixels; both 0 = not set */
} stoker_size;

/* The scale at which images that will be resized are decoded. At either scale only the part that a
 * crop keeps is decoded, if the codec can. */
typedef enum stoker_decode_scale {
    STOKER_DECODE_SCALE_EXACT = 0, /* the image's own size (default) */
    /* Decode JPEGs at 1/8, 2/8 or 4/8 of their size, from the DCT coefficients: the smallest scale
     * at which no side of the rectangle is smaller than its resized side. Other formats, and JPEGs
     * that shrink by less than half, are decoded as with EXACT. Pixels differ slightly;
     * docs/transforms.md says by how much. The scale depends only on the draw and the image's size,
     * so rows are reproducible. STOKER_EINVAL with cache = DECODED unless resize is set, since that
     * cache holds whole images. */
    STOKER_DECODE_SCALE_FAST = 1
} stoker_decode_scale;

/* Start from STOKER_TRANSFORM_INIT, which leaves images unchanged; STOKER_LOADER_OPTIONS_INIT
 * contains it. Sizes are 1..16384 pixels per side. A batch may hold images of different sizes only
 * if resize, random_resized_crop, or resize_shorter and a crop are set, and the data set knows its
 * images' sizes (folder, tar, shards). */
typedef struct stoker_transform {
    stoker_size resize; /* every image to this size; the aspect ratio may change */
    /* Resize the shorter side to this many pixels, 1..16384, and the longer one in proportion,
     * rounded down. Requires center_crop or random_crop. Default 0 = not set. */
    uint32_t resize_shorter;
    stoker_size random_resized_crop; /* a random rectangle of the image, resized to this size */
    /* Area of that rectangle as a share of the image, 0 < min <= max <= 1; default 0.08 and 1. */
    float area_min, area_max;
    /* Its width / height, 1/64..64, min <= max; drawn uniformly in log space; default 3/4 and 4/3.
     */
    float ratio_min, ratio_max;
    stoker_decode_scale decode_scale; /* how images that are resized are decoded; default EXACT */

    /* Keep the center. An odd margin is split as in torchvision: its half at the top and left is
     * rounded to an even number, so 2 of 5 pixels, and 2 of 7, start at pixel 2. */
    stoker_size center_crop;
    stoker_size random_crop; /* a random rectangle of the image and its padding */
    uint32_t pad;            /* pixels added on each side before random_crop, 0..16384; default 0 */

    bool flip; /* left to right, with probability 1/2; default false */
    /* Rotate around the center by a random angle, degrees counter-clockwise, -360 <= min <= max <=
     * 360; bilinear; keeps the size. Default both 0 = none. */
    float rotate_min, rotate_max;
    /* For a value x: multiply by a random factor from max(0, 1 - x) to 1 + x; 0..100; default 0 =
     * unchanged. */
    float brightness, contrast, saturation;
    /* Random shift from -hue to hue, where 1 is a full circle; 0..0.5; default 0 = unchanged. */
    float hue;
    /* Side of the Gaussian kernel, odd, 3..63 pixels; half of it, rounded down, must be less than
     * each side of the output. Edges are reflected. Default 0 = no blur. */
    uint32_t blur;
    /* Random standard deviation of the Gaussian, pixels, 0.01 <= min <= max <= 64; default 0.1 and
     * 2. */
    float sigma_min, sigma_max;
    /* Side of a square centered at a random pixel that is filled with `fill`, 0..16384; it is
     * clipped at the edges. Default 0 = none. */
    uint32_t cutout;
    /* Value of padding, cutout and the corners that a rotation uncovers, per channel, as stored;
     * default 0. */
    uint8_t fill[STOKER_TRANSFORM_CHANNELS_MAX];

    uint32_t reserved[32]; /* 0; for later steps: the size never changes */
} stoker_transform;

#define STOKER_TRANSFORM_DEFAULTS                                                                  \
    STOKER_DEFAULT(area_min, 0.08F)                                                                \
    STOKER_DEFAULT(area_max, 1.0F)                                                                 \
    STOKER_DEFAULT(ratio_min, 3.0F / 4.0F)                                                         \
    STOKER_DEFAULT(ratio_max, 4.0F / 3.0F)                                                         \
    STOKER_DEFAULT(sigma_min, 0.1F)                                                                \
    STOKER_DEFAULT(sigma_max, 2.0F)

STOKER_MAKER(stoker_transform, STOKER_TRANSFORM_DEFAULTS)
#define STOKER_TRANSFORM_INIT STOKER_INITIALIZER(stoker_transform, STOKER_TRANSFORM_DEFAULTS)

STOKER_END_DECLS
#endif
