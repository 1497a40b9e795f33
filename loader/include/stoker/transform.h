/* stoker/transform.h - what is done to an image between its decoding and its place in a batch.
 *
 *   decoded ─▶ one of resize, resize_shorter, random_resized_crop
 *           ─▶ one of centre_crop, random_crop
 *           ─▶ flip ─▶ cutout ─▶ type, scale, mean and std, layout (stoker/loader.h)
 *
 * The order is this one, whatever is asked for; what is not asked for is not done. Images are
 * uint8, channels last, with 1 to 4 channels.
 *
 * Randomness is a pure function of (seed, epoch, sample id): the same bytes come out whatever
 * does the work, and however many threads do. Resizing gives what Pillow's BILINEAR gives,
 * within one level: it averages over all pixels that fall into one, so that nothing is lost on the
 * way down. A fourth channel is one like the others: nothing is multiplied by alpha.
 */
#ifndef STOKER_TRANSFORM_H
#define STOKER_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_TRANSFORM_CHANNELS_MAX = 4,
    STOKER_TRANSFORM_SIDE_MAX = 16384, /* pixels of an output's side */
    STOKER_SOURCE_SIDE_MAX = 65535     /* pixels of the side of an image that is resized */
};

typedef struct stoker_size {
    uint32_t height, width; /* pixels; both 0 = not asked for */
} stoker_size;

/* All zero (the default): images stay as they are. Sizes are 1..16384 pixels a side.
 * With one of the first three, images of differing size make a batch, where the format can tell
 * their size (folder, tar). */
typedef struct stoker_transform {
    stoker_size resize;              /* every image to this size; its aspect may change */
    uint32_t resize_shorter;         /* the shorter side to so many pixels, 1..16384, the longer
                                        one with it, rounded down; a crop must follow. 0 = not */
    stoker_size random_resized_crop; /* a random rectangle of the image, to this size */
    float area_min, area_max;   /* of that rectangle, as a share of the image, 0 < min <= max <= 1;
                                        default 0 = 0.08 and 1 */
    float ratio_min, ratio_max; /* of its width to its height, 1/64..64, min <= max; drawn evenly
                                        from their logarithms; default 0 = 3/4 and 4/3 */

    stoker_size centre_crop; /* the middle; an odd pixel too many is taken from below and right */
    stoker_size random_crop; /* any place of the image and of `pad` pixels around it */
    uint32_t pad;            /* on each side before random_crop, 0..16384; default 0 */

    bool flip;       /* left to right, every other image on average; default false */
    uint32_t cutout; /* side of a square that is painted over, around a random pixel; it may
                        reach over the edge. 0..16384; default 0 = none */
    uint8_t fill[STOKER_TRANSFORM_CHANNELS_MAX]; /* per channel, as stored: of pixels beside the
                                                     image, and of cutout; default 0 */
} stoker_transform;

STOKER_END_DECLS
#endif
