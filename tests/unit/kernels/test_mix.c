/* test_mix.c - every variant blends to the bits of the definition, in place although each row needs
 * its neighbor as it was; a box is copied and nothing beside it.
 *
 * Method: rows that end right before an inaccessible page, at a stride with a gap; results against
 * a copy made before.
 */
#include "kernels/transform/blend/blend.h"

#include <math.h>

#include "kernels/float16.h"
#include "support/files/pages.h"
#include "support/leaks.h"

enum { GAP = 12, BYTES_MAX = 1 << 18 };

static const enum stk_mix_type types[] = { STK_MIX_U8, STK_MIX_F16, STK_MIX_BF16, STK_MIX_F32 };
static const uint32_t lambdas[] = { 0, 1, 9830, 16384, 32767, STK_MIX_STEPS };

/* ---- the definition ---- */

static float value_of(enum stk_mix_type type, const uint8_t *at)
{
    uint16_t half;
    float value;
    memcpy(&half, at, sizeof(half));
    memcpy(&value, at, type == STK_MIX_F32 ? sizeof(value) : 0);
    return type == STK_MIX_F16    ? float_of_float16(half)
           : type == STK_MIX_BF16 ? float_of_bfloat16(half)
                                  : value;
}

static void expect_blended(enum stk_mix_type type, uint8_t own[4], const uint8_t *other,
                           uint32_t steps)
{
    const double lambda = steps / 32768.0;
    if (type == STK_MIX_U8) { /* ties go up */
        own[0] = (uint8_t)floor(lambda * own[0] + (1.0 - lambda) * other[0] + 0.5);
        return;
    }
    const volatile float first = (float)(lambda * (double)value_of(type, own));
    const volatile float second = (float)((1.0 - lambda) * (double)value_of(type, other));
    const float sum = first + second;
    const uint16_t half = type == STK_MIX_F16 ? float16_of_float(sum) : bfloat16_of_float(sum);
    memcpy(own, type == STK_MIX_F32 ? (const void *)&sum : (const void *)&half,
           stk_mix_element_bytes(type));
}

/* ---- mixup ---- */

/* Numbers of both signs and many sizes, few of them special. */
static void paint(enum stk_mix_type type, uint8_t *bytes, size_t count, uint64_t seed)
{
    pages_fill(bytes, count, seed);
    const size_t step = stk_mix_element_bytes(type);
    for (size_t at = 0; type != STK_MIX_U8 && at + step <= count; at += step) {
        const float value = ldexpf((float)bytes[at] - 127.5F, bytes[at + 1] % 17 - 12);
        const uint16_t half =
            type == STK_MIX_F16 ? float16_of_float(value) : bfloat16_of_float(value);
        memcpy(bytes + at, type == STK_MIX_F32 ? (const void *)&value : (const void *)&half, step);
    }
}

static void check_mixup(const struct stk_mix_variant *variant, enum stk_mix_type type,
                        uint32_t rows, size_t elements, uint32_t steps)
{
    const size_t step = stk_mix_element_bytes(type), row_bytes = elements * step;
    const size_t stride = row_bytes + GAP, bytes = stride * (rows - 1) + row_bytes;
    struct pages pages = pages_open(BYTES_MAX), before_pages = pages_open(BYTES_MAX);
    unsigned char *at = pages_take(&pages, bytes), *before = pages_take(&before_pages, bytes);
    paint(type, at, bytes, rows + elements);
    memcpy(before, at, bytes);
    const struct stk_mix_rows all = { .at = at, .stride_bytes = stride, .count = rows };
    stk_mixup_rows_by(variant, type, &all, elements, steps);
    pages_check(at);
    for (uint32_t row = 0; row < rows; row++) {
        const uint8_t *other = before + (row > 0 ? row - 1 : rows - 1) * stride;
        for (size_t i = 0; i < row_bytes; i += step) {
            uint8_t expected[4];
            memcpy(expected, before + row * stride + i, step);
            expect_blended(type, expected, other + i, steps);
            cr_assert_eq(memcmp(expected, at + row * stride + i, step), 0,
                         "%s, type %d, row %u of %u, byte %zu, %u steps", variant->name, (int)type,
                         row, rows, i, steps);
        }
        if (row + 1 < rows)
            cr_assert_eq(
                memcmp(at + row * stride + row_bytes, before + row * stride + row_bytes, GAP), 0,
                "the gap was written");
    }
    pages_close(&pages);
    pages_close(&before_pages);
}

CleanTest(mix, every_variant_blends_to_the_bits_of_the_definition)
{
    static const uint32_t counts[] = { 2, 3, 8 };
    static const size_t sizes[] = { 1, 7, 33, 1024, 1025, 5000 };
    uint32_t variants = 0;
    for (const struct stk_mix_variant *v = stk_mix_variants; v->name != NULL; v++) {
        if (!v->runs_here())
            continue;
        variants++;
        for (size_t t = 0; t < 4; t++)
            for (size_t c = 0; c < 3; c++)
                for (size_t s = 0; s < 6; s++)
                    for (size_t l = 0; l < 6; l++)
                        check_mixup(v, types[t], counts[c], sizes[s], lambdas[l]);
    }
    cr_assert_geq(variants, 1);
}

/* Each pair of levels. */
CleanTest(mix, bytes_become_the_nearest_level)
{
    static uint8_t own[256 * 256], other[256 * 256];
    for (uint32_t steps = 0; steps <= STK_MIX_STEPS; steps += 1021) {
        for (uint32_t i = 0; i < sizeof(own); i++) {
            own[i] = (uint8_t)i;
            other[i] = (uint8_t)(i >> 8);
        }
        stk_blend_u8_baseline(own, other, sizeof(own), steps);
        for (uint32_t i = 0; i < sizeof(own); i++) {
            const double wanted =
                (steps * (double)(uint8_t)i + (STK_MIX_STEPS - steps) * (double)(uint8_t)(i >> 8)) /
                STK_MIX_STEPS;
            cr_assert_leq(fabs(own[i] - wanted), 0.5, "%u steps: %u, %u", steps, i & 255, i >> 8);
        }
    }
}

Test(mix, other_types_are_not_blended)
{
    enum stk_mix_type type;
    for (int dtype = STOKER_DTYPE_NONE; dtype <= STOKER_DTYPE_BOOL; dtype++) {
        const bool known = dtype == STOKER_DTYPE_UINT8 || dtype == STOKER_DTYPE_FLOAT16 ||
                           dtype == STOKER_DTYPE_BFLOAT16 || dtype == STOKER_DTYPE_FLOAT32;
        cr_assert_eq(stk_mix_type_of((stoker_dtype)dtype, &type), known);
        if (known)
            cr_assert_eq(stk_mix_element_bytes(type), stoker_dtype_bytes((stoker_dtype)dtype));
    }
}

/* ---- cutmix ---- */

static bool is_inside(const struct stk_mix_box *box, size_t at)
{
    const size_t plane = at / box->plane_bytes, in_plane = at % box->plane_bytes;
    if (plane >= box->planes || in_plane < box->first_bytes)
        return false;
    const size_t line = (in_plane - box->first_bytes) / box->line_bytes;
    return line < box->lines && (in_plane - box->first_bytes) % box->line_bytes < box->run_bytes;
}

CleanTest(mix, the_box_comes_from_the_row_before_and_the_rest_stays)
{
    static const struct stk_mix_box boxes[] = {
        /* first, line, plane and run bytes; lines, planes */
        { 0, 10, 100, 10, 10, 1 }, { 36, 12, 120, 7, 3, 3 }, { 5, 9000, 18000, 8990, 2, 1 },
        { 0, 8, 64, 0, 4, 2 },     { 0, 8, 64, 8, 0, 2 },
    };
    for (size_t b = 0; b < sizeof(boxes) / sizeof(boxes[0]); b++)
        for (uint32_t rows = 2; rows <= 5; rows++) {
            const struct stk_mix_box *box = &boxes[b];
            const size_t row_bytes = box->planes * box->plane_bytes, bytes = rows * row_bytes;
            struct pages pages = pages_open(BYTES_MAX), before_pages = pages_open(BYTES_MAX);
            unsigned char *at = pages_take(&pages, bytes);
            unsigned char *before = pages_take(&before_pages, bytes);
            pages_fill(at, bytes, rows);
            memcpy(before, at, bytes);
            const struct stk_mix_rows all = { .at = at, .stride_bytes = row_bytes, .count = rows };
            stk_cutmix_rows(&all, box);
            pages_check(at);
            for (size_t i = 0; i < bytes; i++) {
                const size_t row = i / row_bytes, in_row = i % row_bytes;
                const size_t from = is_inside(box, in_row) ? (row + rows - 1) % rows : row;
                cr_assert_eq(at[i], before[from * row_bytes + in_row], "box %zu, byte %zu", b, i);
            }
            pages_close(&pages);
            pages_close(&before_pages);
        }
}
