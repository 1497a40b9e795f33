/* device_blend.h - mixes the samples of a batch in GPU memory, behind what converts its images.
 *
 *   slot ──copy──▶ buffer: | rows as stored, fields, ids | rows as delivered | ... |
 *                                       kernels ───────────▲ └─ stk_mixup_* or stk_cutmix, in place
 *
 * The host draws: both sides of the bus mix from the same draw (blend.h), to the same bits.
 */
#ifndef STK_PIPELINE_DEVICE_MIXING_H
#define STK_PIPELINE_DEVICE_MIXING_H

#include "kernels/transform/gpu/launch_blend.h"
#include "loader/device/device.h"
#include "loader/pipeline/batch/blend.h"

/* One array in a buffer. */
struct stk_device_mixed {
    const struct stk_mix_array *array;
    size_t at; /* offset of row 0 in the buffer */
    size_t stride_bytes;
    struct stk_mixup_launch mixup;
    struct stk_cutmix_launch cutmix;
};

struct stk_device_blend {
    const struct stk_blend_plan *plan; /* NULL = the GPU mixes nothing */
    struct stk_device_mixed *mixed;    /* [mixed_count] the plan's arrays that lie on the device */
    uint32_t mixed_count;
    void *mixup, *cutmix; /* kernels; NULL = not asked for */
};

/* Load the kernels; nothing happens if no array lies on the device. The plan must outlive it.
 * Returns 0, STOKER_ENOMEM, or STOKER_EDEVICE or ENOTSUP with the reason in `why`. Destroy either
 * way. */
int stk_device_blend_init(struct stk_device_blend *mixing, const struct stk_blend_plan *plan,
                          struct stk_device *device, char why[STK_DEVICE_WHY_BYTES]);
void stk_device_blend_destroy(struct stk_device_blend *mixing); /* all zero is allowed */

/* Set where the rows of field `field` lie in each buffer. */
void stk_device_blend_place(struct stk_device_blend *mixing, uint32_t field, size_t at,
                            size_t stride_bytes);

/* Prepare the launches for a batch of `rows` rows in the buffer at `memory`: mixed_count of them at
 * most. Returns their number. Valid until the next call. */
uint32_t stk_device_blend_launch(struct stk_device_blend *mixing, uint8_t *memory,
                                 const struct stk_batch_place *place, uint32_t rows,
                                 struct stk_device_launch *launches);

#endif
