/* launch_blend.h - mixup and cutmix on a device: arguments of the kernels, and the work of one
 * thread.
 *
 *   thread i   element i of all rows, from the last row to the first: in place, with no memory but
 *              the rows
 *
 * The rows before are loaded some at a time, because each store could change what a later load
 * finds, and a load takes long.
 *
 * The file that compiles launch_blend_body.h says how halves are loaded and stored. Compiled as C
 * and by nvcc. */
#ifndef STK_KERNELS_TRANSFORM_LAUNCH_MIX_H
#define STK_KERNELS_TRANSFORM_LAUNCH_MIX_H

#include "kernels/kernel.h"
#include "kernels/transform/blend/blend.h"

/* "stk_mixup_u8", "stk_mixup_f16", "stk_mixup_bf16", "stk_mixup_f32", in the order of enum
 * stk_mix_type. */
struct stk_mixup_launch {
    uint8_t *rows; /* aligned to its elements */
    uint64_t stride_bytes;
    uint64_t elements; /* elements of a row */
    uint32_t count;    /* rows, >= 2 */
    uint32_t steps;    /* lambda x STK_MIX_STEPS */
};

/* "stk_cutmix". */
struct stk_cutmix_launch {
    uint8_t *rows;
    uint64_t stride_bytes;
    struct stk_mix_box box;
    uint32_t count; /* rows, >= 2 */
    /* Bytes that a thread copies: 1, 2 or 4; divides all sizes of the box, the stride and the
     * address. */
    uint32_t unit_bytes;
};

/* Units of the box in a row. */
STK_RNG uint64_t stk_cutmix_units(const struct stk_cutmix_launch *launch)
{
    return launch->box.run_bytes / launch->unit_bytes * launch->box.lines * launch->box.planes;
}

#ifndef __CUDACC__

/* Fills in a launch; on_device: the rows, which the host may be unable to touch. */
void stk_mixup_launch_of(struct stk_mixup_launch *launch, const struct stk_mix_rows *on_device,
                         size_t elements, uint32_t steps);
void stk_cutmix_launch_of(struct stk_cutmix_launch *launch, const struct stk_mix_rows *on_device,
                          const struct stk_mix_box *box);

/* Returns the name of a type's kernel. */
const char *stk_mixup_kernel_name(enum stk_mix_type type);

/* X(name, type) for every kernel of mixup, in the order of enum stk_mix_type. */
#define STK_MIXUP_KERNELS(X)                                                                       \
    X(stk_mixup_u8, STK_MIX_U8)                                                                    \
    X(stk_mixup_f16, STK_MIX_F16)                                                                  \
    X(stk_mixup_bf16, STK_MIX_BF16)                                                                \
    X(stk_mixup_f32, STK_MIX_F32)

/* For the table of kernels (launch.c). */
struct stk_launch_grid stk_mixup_grid(const void *arguments);
struct stk_launch_grid stk_cutmix_grid(const void *arguments);

#endif
#endif
