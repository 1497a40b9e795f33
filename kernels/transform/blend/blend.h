/* blend.h - mixup and cutmix of the rows of a batch, in place (stoker/blend.h).
 *
 *   row k ◀─ row k - 1       all of them as they were: from the last row to the first,
 *   row 0 ◀─ last row        which is put aside before, a chunk at a time
 *
 * One chunk of all rows follows the other: then each byte is read from memory once, although two
 * rows need it. The arithmetic of one element is compiled by nvcc as well.
 */
#ifndef STK_KERNELS_TRANSFORM_BLEND_H
#define STK_KERNELS_TRANSFORM_BLEND_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/rng.h"

enum { STK_MIX_STEPS = 32768 }; /* lambda 1 */

/* Element types that can be blended, in the order of the kernels. */
enum stk_mix_type { STK_MIX_U8, STK_MIX_F16, STK_MIX_BF16, STK_MIX_F32, STK_MIX_TYPES };

/* The same array of all rows of a batch. */
struct stk_mix_rows {
    uint8_t *at; /* row 0 */
    size_t stride_bytes;
    uint32_t count; /* >= 2 */
};

/* A box of one row: lines of each plane. */
struct stk_mix_box {
    size_t first_bytes; /* where the first line of the first plane begins */
    size_t line_bytes;  /* from line to line */
    size_t plane_bytes; /* from plane to plane */
    size_t run_bytes;   /* bytes of each line that belong to the box */
    uint32_t lines, planes;
};

/* steps: lambda x STK_MIX_STEPS. */
STK_RNG uint8_t stk_mix_byte(uint8_t own, uint8_t other, uint32_t steps)
{
    const int32_t difference = (int32_t)own - (int32_t)other;
    return (uint8_t)((int32_t)other + ((difference * (int32_t)steps + STK_MIX_STEPS / 2) >> 15));
}

/* Both weights are exact: steps / STK_MIX_STEPS and 1 less that. */
STK_RNG float stk_mix_float(float own, float other, float own_weight, float other_weight)
{
    const float first = own * own_weight, second = other * other_weight;
    return first + second;
}

#ifndef __CUDACC__

#include <stdbool.h>
#include <stoker/tensor.h>

/* Returns false if elements of that type cannot be blended. */
bool stk_mix_type_of(stoker_dtype dtype, enum stk_mix_type *type);
size_t stk_mix_element_bytes(enum stk_mix_type type);

/* Blends `elements` elements of each row with those of the row before it. */
void stk_mixup_rows(enum stk_mix_type type, const struct stk_mix_rows *rows, size_t elements,
                    uint32_t steps);

/* Copies the box of each row from the row before it. */
void stk_cutmix_rows(const struct stk_mix_rows *rows, const struct stk_mix_box *box);

/* own[i] = mixed with other[i], for i < count. */
typedef void stk_blend_fn(void *own, const void *other, size_t count, uint32_t steps);

/* Functions per type; all variants give the same bits. */
struct stk_mix_variant {
    const char *name;
    bool (*runs_here)(void);
    stk_blend_fn *blend[STK_MIX_TYPES];
};
enum { STK_MIX_VARIANTS_MAX = 2 };
extern const struct stk_mix_variant stk_mix_variants[STK_MIX_VARIANTS_MAX + 1]; /* best first */

enum { STK_MIX_CHUNK = 4096 }; /* bytes of all rows that are mixed together */

/* The same as stk_mixup_rows() by one variant. */
void stk_mixup_rows_by(const struct stk_mix_variant *variant, enum stk_mix_type type,
                       const struct stk_mix_rows *rows, size_t elements, uint32_t steps);

stk_blend_fn stk_blend_u8_baseline, stk_blend_f16_baseline, stk_blend_bf16_baseline,
    stk_blend_f32_baseline;
stk_blend_fn stk_blend_u8_avx2, stk_blend_f16_avx2, stk_blend_bf16_avx2, stk_blend_f32_avx2;
stk_blend_fn stk_blend_u8_neon, stk_blend_f16_neon, stk_blend_bf16_neon, stk_blend_f32_neon;

#endif
#endif
