/* blend.c - see blend.h. */
#include "kernels/transform/blend/blend.h"

#include <assert.h>
#include <string.h>

#include "kernels/convert/variants.h"

const struct stk_mix_variant stk_mix_variants[STK_MIX_VARIANTS_MAX + 1] = {
#ifdef STK_KERNELS_X86
    { "avx2",
      stk_convert_runs_on_avx2,
      { stk_blend_u8_avx2, stk_blend_f16_avx2, stk_blend_bf16_avx2, stk_blend_f32_avx2 } },
#endif
#ifdef STK_KERNELS_NEON
    { "neon",
      stk_convert_runs_anywhere,
      { stk_blend_u8_neon, stk_blend_f16_neon, stk_blend_bf16_neon, stk_blend_f32_neon } },
#endif
    { "baseline",
      stk_convert_runs_anywhere,
      { stk_blend_u8_baseline, stk_blend_f16_baseline, stk_blend_bf16_baseline,
        stk_blend_f32_baseline } },
    { .name = NULL },
};

bool stk_mix_type_of(stoker_dtype dtype, enum stk_mix_type *type)
{
    static const stoker_dtype dtypes[STK_MIX_TYPES] = { STOKER_DTYPE_UINT8, STOKER_DTYPE_FLOAT16,
                                                        STOKER_DTYPE_BFLOAT16,
                                                        STOKER_DTYPE_FLOAT32 };
    for (int i = 0; i < STK_MIX_TYPES; i++)
        if (dtypes[i] == dtype) {
            *type = (enum stk_mix_type)i;
            return true;
        }
    return false;
}

size_t stk_mix_element_bytes(enum stk_mix_type type)
{
    return type == STK_MIX_U8 ? 1 : type == STK_MIX_F32 ? 4 : 2;
}

static uint8_t *row_of(const struct stk_mix_rows *rows, uint32_t row, size_t at)
{
    return rows->at + row * rows->stride_bytes + at;
}

/* ---- mixup ---- */

static void blend_chunk(stk_blend_fn *blend, const struct stk_mix_rows *rows, size_t at,
                        size_t bytes, size_t elements, uint32_t steps)
{
    _Alignas(64) uint8_t last[STK_MIX_CHUNK];
    memcpy(last, row_of(rows, rows->count - 1, at), bytes);
    for (uint32_t row = rows->count; row-- > 1;)
        blend(row_of(rows, row, at), row_of(rows, row - 1, at), elements, steps);
    blend(row_of(rows, 0, at), last, elements, steps);
}

void stk_mixup_rows_by(const struct stk_mix_variant *variant, enum stk_mix_type type,
                       const struct stk_mix_rows *rows, size_t elements, uint32_t steps)
{
    const size_t element_bytes = stk_mix_element_bytes(type);
    const size_t most = STK_MIX_CHUNK / element_bytes;
    assert(rows->count >= 2);
    assert(steps <= STK_MIX_STEPS);
    for (size_t done = 0; done < elements; done += most) {
        const size_t some = elements - done < most ? elements - done : most;
        blend_chunk(variant->blend[type], rows, done * element_bytes, some * element_bytes, some,
                    steps);
    }
}

void stk_mixup_rows(enum stk_mix_type type, const struct stk_mix_rows *rows, size_t elements,
                    uint32_t steps)
{
    const struct stk_mix_variant *variant = stk_mix_variants;
    while (!variant->runs_here())
        variant++;
    stk_mixup_rows_by(variant, type, rows, elements, steps);
}

/* ---- cutmix ---- */

static void copy_chunk(const struct stk_mix_rows *rows, size_t at, size_t bytes)
{
    uint8_t last[STK_MIX_CHUNK];
    memcpy(last, row_of(rows, rows->count - 1, at), bytes);
    for (uint32_t row = rows->count; row-- > 1;)
        memcpy(row_of(rows, row, at), row_of(rows, row - 1, at), bytes);
    memcpy(row_of(rows, 0, at), last, bytes);
}

static void copy_line(const struct stk_mix_rows *rows, size_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += STK_MIX_CHUNK)
        copy_chunk(rows, at + done, bytes - done < STK_MIX_CHUNK ? bytes - done : STK_MIX_CHUNK);
}

void stk_cutmix_rows(const struct stk_mix_rows *rows, const struct stk_mix_box *box)
{
    assert(rows->count >= 2);
    for (uint32_t plane = 0; plane < box->planes; plane++)
        for (uint32_t line = 0; line < box->lines; line++)
            copy_line(rows, box->first_bytes + plane * box->plane_bytes + line * box->line_bytes,
                      box->run_bytes);
}
