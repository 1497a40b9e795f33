/* device_convert.h - rows as stored become rows as trained on, on the GPU, behind their copy.
 *
 *   slot ──copy──▶ buffer: | rows as stored, labels, ids | rows as trained on |
 *                            └─────────── kernel ──────────▲
 *
 * The bytes that cross the bus are those that are stored: a quarter of float32's. The kernel gives the
 * bits that the CPU would (kernels/launch.h).
 */
#ifndef STK_ROAD_DEVICE_CONVERT_H
#define STK_ROAD_DEVICE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/launch.h"
#include "loader/device/device.h"

struct stk_device_convert {
    bool on; /* false: the CPU converts, and buffers hold what slots hold */
    struct stk_convert_plan convert;
    struct stk_transform_plan transform; /* of the pictures: nothing but to convert them */
    struct stk_crop_launch launch;       /* what is the same for every batch */
    struct stk_device_launch kernel;
};

/* Whether the GPU could do it: rows of uint8 with 1 to 4 channels that are to become something else.
 * height x width pixels; those of a row that is no image lie side by side. */
bool stk_device_convert_fits(const struct stk_convert_plan *plan, uint64_t height, uint64_t width);

/* Load the kernel for `plan`. 0, or the reason in `why`: STOKER_EDEVICE, STOKER_ENOTSUP. */
int stk_device_convert_init(struct stk_device_convert *out, struct stk_device *device,
                            const struct stk_convert_plan *plan, uint32_t height, uint32_t width,
                            char why[STK_DEVICE_WHY_BYTES]);

/* What to launch for `count` rows; pointers are the device's. Valid until the next call. */
const struct stk_device_launch *stk_device_convert_rows(struct stk_device_convert *convert,
                                                        const void *images, const void *ids,
                                                        void *out, uint32_t count);

#endif
