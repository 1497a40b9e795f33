/* device_convert.h - converts rows on the GPU, behind their copy.
 *
 *   slot ──copy──▶ buffer: | rows as stored, labels, ids | rows as delivered |
 *                            │                             ▲
 *                            ├──────────── stk_crop_* ─────┤  cropped, flipped, painted over, converted
 *                            └─ resized, rotated, colored, blurred in scratch, if asked for
 *
 * Rows cross the bus as stored, a quarter of the bytes of float32. The kernels give the bits of the
 * CPU (kernels/transform/gpu/launch.h). All batches share one scratch: the copy stream orders them.
 */
#ifndef STK_PIPELINE_DEVICE_CONVERT_H
#define STK_PIPELINE_DEVICE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/transform/gpu/launch.h"
#include "loader/device/device.h"

struct stk_device_convert {
    bool on; /* false: the CPU does everything, and buffers hold what slots hold */
    struct stk_device *device;
    struct stk_convert_plan convert;
    struct stk_transform_plan transform;
    struct stk_launch_steps steps;
    struct stk_device_launch launches[STK_LAUNCH_STEPS_MAX]; /* [steps.count] */
    void *scratch;                                           /* GPU memory; NULL = none */
};

struct stk_device_convert_options {
    struct stk_device *device;
    const struct stk_framing *framing;      /* for images as they cross the bus */
    const uint8_t *fill;                    /* [STOKER_TRANSFORM_CHANNELS_MAX] */
    const struct stk_convert_plan *convert; /* to rows as delivered; copied */
    uint32_t height, width;                 /* size of an image as it crosses the bus */
    uint32_t batch_size;
};

/* Returns true if the GPU can do it: uint8 rows with 1 to 4 channels, and something changes. */
bool stk_device_convert_fits(const struct stk_convert_plan *plan, bool transforms);

/* Load the kernels, allocate the scratch. Returns 0; or STOKER_EDEVICE or STOKER_ENOTSUP, with the
 * reason in `why` and *out all zero. The device must outlive *out. */
int stk_device_convert_init(struct stk_device_convert *out,
                            const struct stk_device_convert_options *options,
                            char why[STK_DEVICE_WHY_BYTES]);

/* Free the scratch, which the GPU must no longer use. All zero is allowed. */
void stk_device_convert_destroy(struct stk_device_convert *convert);

/* Prepare launches[steps.count] for a batch, with device pointers, to be launched in order. Valid
 * until the next call. */
void stk_device_convert_rows(struct stk_device_convert *convert,
                             const struct stk_launch_rows *rows);

#endif
