/* stoker/transform.h - what is done to an image between decoding and its place in a batch.
 *
 *   decoded ─▶ one of resize, resize_shorter, random_resized_crop
 *           ─▶ one of center_crop, random_crop
 *           ─▶ flip ─▶ rotate ─▶ brightness, contrast, saturation, hue in random order
 *           ─▶ blur ─▶ cutout ─▶ type, scale, mean and std, layout (stoker/loader.h)
 *
 * The order is fixed; steps that are not set are left out. Images are uint8, channels last, with 1
 * to 4 channels.
 *
 * Random draws are a pure function of (seed, epoch, sample id): the bytes do not depend on the
 * number of threads or on the device. Resizing matches Pillow's BILINEAR within one level: it
 * averages over all pixels that fall into one, so downscaling loses nothing. A fourth channel is
 * treated like the others: nothing is multiplied by alpha.
 *
 * Colors follow torchvision's ColorJitter on uint8 tensors, within one level: each of the four that
 * is set is applied once, in an order drawn for each image, and its result is cut to whole levels.
 * With 3 or 4 channels the first three are red, green and blue; with 1 or 2 the first is gray, and
 * saturation and hue change nothing. The second of 2 channels and the fourth of 4 keep their
 * values. Blur follows torchvision's GaussianBlur, within one level.
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

/* How an image that is resized is decoded. Either way only the part is decoded that a crop leaves,
 * if the codec can. */
typedef enum stoker_decode_scale {
    STOKER_DECODE_SCALE_EXACT = 0, /* at its own size (default) */
    /* A JPEG at 1/8, 2/8 or 4/8 of its size, computed from the DCT, if no side of the rectangle
     * that is resized becomes smaller than its new size; other formats, and JPEGs that shrink by
     * less than half, as with EXACT. The pixels differ slightly: bench/README.md has figures. The
     * scale depends only on the draw and the image's size, so rows are as reproducible as the exact
     * ones. STOKER_EINVAL with cache = DECODED unless resize is set, since that cache holds whole
     * images. */
    STOKER_DECODE_SCALE_FAST = 1
} stoker_decode_scale;

/* Start from STOKER_TRANSFORM_INIT, as the transform of STOKER_LOADER_OPTIONS_INIT does: images
 * stay as they are. Sizes are 1..16384 pixels per side. With one of the first three, images that
 * differ in size make a batch, if the format knows their sizes (folder, tar). */
typedef struct stoker_transform {
    stoker_size resize; /* every image to this size; the aspect ratio may change */
    /* The shorter side to this many pixels, 1..16384; the longer one in proportion, rounded down; a
     * crop must follow. Default 0 = not set. */
    uint32_t resize_shorter;
    stoker_size random_resized_crop; /* a random rectangle of the image, resized to this size */
    /* Its area as a share of the image, 0 < min <= max <= 1; default 0.08 and 1. */
    float area_min, area_max;
    /* Its width / height, 1/64..64, min <= max; the logarithm is uniform; default 3/4 and 4/3. */
    float ratio_min, ratio_max;
    stoker_decode_scale decode_scale; /* how images that are resized are decoded; default EXACT */

    /* The center. Half of an odd surplus is rounded to an even number at the top and left, as in
     * torchvision: of 5 pixels 2 begin at 2, of 7 at 2. */
    stoker_size center_crop;
    stoker_size random_crop; /* anywhere in the image and the `pad` pixels around it */
    uint32_t pad;            /* pixels added on each side before random_crop, 0..16384; default 0 */

    bool flip; /* left to right, with probability 1/2; default false */
    /* Rotation around the image's center by a random angle, degrees counter-clockwise, -360 <= min
     * <= max <= 360; bilinear; the size stays. Default both 0 = none. */
    float rotate_min, rotate_max;
    /* Random factor from max(0, 1 - x) to 1 + x, 0 <= x <= 100; default 0 = unchanged. */
    float brightness, contrast, saturation;
    /* Random shift from -hue to hue, 0..0.5; 1 is the entire circle; default 0 = unchanged. */
    float hue;
    /* Side of a Gaussian's kernel, odd, 3..63 pixels; half of it, rounded down, must be less than
     * each side of the output, which is reflected at its edges. Default 0 = none. */
    uint32_t blur;
    /* Random deviation of the Gaussian, pixels, 0.01 <= min <= max <= 64; default 0.1 and 2. */
    float sigma_min, sigma_max;
    /* Side of a square painted over around a random pixel, 0..16384; may reach beyond the edge.
     * Default 0 = none. */
    uint32_t cutout;
    /* Per channel, as stored: value of padding, of cutout and of what a rotation leaves empty;
     * default 0. */
    uint8_t fill[STOKER_TRANSFORM_CHANNELS_MAX];

    uint32_t reserved[32]; /* 0; later versions put their steps here, so that the size stays */
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
