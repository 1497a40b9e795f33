/* device_convert.h - rows as stored become rows as trained on, on the GPU, behind their copy.
 *
 *   slot ──copy──▶ buffer: | rows as stored, labels, ids | rows as trained on |
 *                            │                             ▲
 *                            ├──────────── stk_crop_* ─────┤  cropped, flipped, painted over, converted
 *                            └─ stk_taps, stk_resize ─▶ scratch, where images are resized
 *
 * The bytes that cross the bus are those that are stored: a quarter of float32's. The kernels give the
 * bits that the CPU would (kernels/transform/launch.h). The scratch is one for all batches: they go through it in
 * the order of the copy stream.
 */
#ifndef STK_PIPELINE_DEVICE_CONVERT_H
#define STK_PIPELINE_DEVICE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/transform/launch.h"
#include "loader/device/device.h"

enum { STK_DEVICE_LAUNCHES_MAX = 3 };

struct stk_device_convert {
    bool on; /* false: the CPU does all, and buffers hold what slots hold */
    struct stk_device *device;
    struct stk_convert_plan convert;
    struct stk_transform_plan transform;
    struct stk_crop_launch launch; /* what is the same for every batch */
    const struct stk_kernel *kernels[STK_DEVICE_LAUNCHES_MAX];
    struct stk_device_launch launches[STK_DEVICE_LAUNCHES_MAX]; /* of them */
    uint32_t launch_count;
    void *scratch; /* GPU memory; NULL = images are not resized */
    size_t scratch_bytes;
};

struct stk_device_convert_options {
    struct stk_device *device;
    const struct stk_framing *framing;      /* of images that cross the bus */
    const uint8_t *fill;                    /* [STOKER_TRANSFORM_CHANNELS_MAX] */
    const struct stk_convert_plan *convert; /* from them to rows as delivered; copied */
    uint32_t height, width;                 /* of such an image */
    uint32_t batch_size;
};

/* Whether the GPU could do it: rows of uint8 with 1 to 4 channels that are to become something else. */
bool stk_device_convert_fits(const struct stk_convert_plan *plan, bool transforms);

/* Load the kernels, take the scratch. 0, or the reason in `why`: STOKER_EDEVICE, STOKER_ENOTSUP; then
 * *out is all zero. The device must outlive *out. */
int stk_device_convert_init(struct stk_device_convert *out,
                            const struct stk_device_convert_options *options,
                            char why[STK_DEVICE_WHY_BYTES]);

/* Give the scratch back, which the GPU must be done with. All zero is allowed. */
void stk_device_convert_destroy(struct stk_device_convert *convert);

/* One batch; pointers are the device's. */
struct stk_device_rows {
    const void *images;
    bool gather; /* row k is image number ids[k]; else number k */
    const void *ids;
    void *out;
    uint32_t count; /* >= 1 */
    uint64_t epoch;
};

/* What to launch for it, one after the other: convert->launches, launch_count of them. Valid until the
 * next call. */
void stk_device_convert_rows(struct stk_device_convert *convert,
                             const struct stk_device_rows *rows);

#endif
