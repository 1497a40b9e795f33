/* launch_blend_body.h - the work of one thread of the mixing kernels (launch_blend.h), for nvcc.
 *
 * The including file defines stk_load_f16(), stk_load_bf16(), stk_store_f16() and stk_store_bf16().
 */
#ifndef STK_KERNELS_TRANSFORM_LAUNCH_MIX_BODY_H
#define STK_KERNELS_TRANSFORM_LAUNCH_MIX_BODY_H

#include "kernels/transform/gpu/launch_blend.h"

#ifdef __CUDACC__
#define STK_MIX_UNROLL _Pragma("unroll")
#else
#define STK_MIX_UNROLL
#endif

enum { STK_MIX_AHEAD = 8 }; /* rows that are loaded together */

/* ---- elements, as what is blended ---- */

STK_RNG float stk_mix_load(const uint8_t *at, int type)
{
    if (type == STK_MIX_U8)
        return (float)*at;
    if (type == STK_MIX_F16)
        return stk_load_f16((const uint16_t *)(const void *)at);
    if (type == STK_MIX_BF16)
        return stk_load_bf16((const uint16_t *)(const void *)at);
    return *(const float *)(const void *)at;
}

STK_RNG void stk_mix_store(uint8_t *at, float own, float other, uint32_t steps, int type)
{
    const float weight = (float)steps / (float)STK_MIX_STEPS;
    const float sum = stk_mix_float(own, other, weight, 1.0F - weight);
    if (type == STK_MIX_U8)
        *at = stk_mix_byte((uint8_t)own, (uint8_t)other, steps);
    else if (type == STK_MIX_F16)
        stk_store_f16((uint16_t *)(void *)at, sum);
    else if (type == STK_MIX_BF16)
        stk_store_bf16((uint16_t *)(void *)at, sum);
    else
        *(float *)(void *)at = sum;
}

STK_RNG void stk_mixup_thread(const struct stk_mixup_launch *launch, uint64_t i, int type)
{
    const uint64_t bytes = type == STK_MIX_U8 ? 1 : type == STK_MIX_F32 ? 4 : 2;
    const uint64_t stride = launch->stride_bytes;
    uint8_t *at = launch->rows + i * bytes + (launch->count - 1) * stride;
    const float last = stk_mix_load(at, type);
    float own = last, others[STK_MIX_AHEAD];
    uint32_t row = launch->count - 1;
    for (; row >= STK_MIX_AHEAD; row -= STK_MIX_AHEAD) {
        STK_MIX_UNROLL
        for (int k = 0; k < STK_MIX_AHEAD; k++)
            others[k] = stk_mix_load(at - (uint64_t)(k + 1) * stride, type);
        STK_MIX_UNROLL
        for (int k = 0; k < STK_MIX_AHEAD; k++) {
            stk_mix_store(at, own, others[k], launch->steps, type);
            own = others[k];
            at -= stride;
        }
    }
    for (; row > 0; row--) {
        const float other = stk_mix_load(at - stride, type);
        stk_mix_store(at, own, other, launch->steps, type);
        own = other;
        at -= stride;
    }
    stk_mix_store(at, own, last, launch->steps, type);
}

/* ---- units of bytes, as they are ---- */

STK_RNG uint32_t stk_mix_unit(const uint8_t *at, uint32_t bytes)
{
    return bytes == 4   ? *(const uint32_t *)(const void *)at
           : bytes == 2 ? *(const uint16_t *)(const void *)at
                        : *at;
}

STK_RNG void stk_mix_put_unit(uint8_t *at, uint32_t bytes, uint32_t unit)
{
    if (bytes == 4)
        *(uint32_t *)(void *)at = unit;
    else if (bytes == 2)
        *(uint16_t *)(void *)at = (uint16_t)unit;
    else
        *at = (uint8_t)unit;
}

STK_RNG void stk_cutmix_thread(const struct stk_cutmix_launch *launch, uint64_t i)
{
    const struct stk_mix_box *box = &launch->box;
    const uint32_t bytes = launch->unit_bytes;
    const uint64_t run = box->run_bytes / bytes, line = i / run;
    uint8_t *const first = launch->rows + box->first_bytes + line / box->lines * box->plane_bytes +
                           line % box->lines * box->line_bytes + i % run * bytes;
    uint8_t *at = first + (launch->count - 1) * launch->stride_bytes;
    const uint32_t last = stk_mix_unit(at, bytes);
    for (; at != first; at -= launch->stride_bytes)
        stk_mix_put_unit(at, bytes, stk_mix_unit(at - launch->stride_bytes, bytes));
    stk_mix_put_unit(first, bytes, last);
}

#endif
