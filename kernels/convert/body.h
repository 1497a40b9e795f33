/* body.h - the converters: written once, compiled by each variant.
 *
 *   rows[] ──▶ row ──▶ NHWC: one span with repeating factors ──────────▶ out
 *               │
 *               └────▶ NCHW: tile of pixels ─split─▶ planes in L1 ─span▶ out
 *
 * The including file defines the lanes (LANES floats at a time) and, if it has them,
 * the byte shuffles of split_ssse3.h (STK_SPLIT_BYTES). Loads and stores are passed as
 * constants to functions that are always inlined, so each pair of types gets a tight loop.
 */
#ifndef STK_KERNELS_CONVERT_BODY_H
#define STK_KERNELS_CONVERT_BODY_H

#include "kernels/convert/span_body.h"
#include "kernels/convert/variants.h"

enum {
    PERIOD_UNIFORM = 16, /* period of a plan with one factor for all elements */
    TILE_BYTES = 8192,   /* input pixels split at a time; they stay in L1 */
    BLOCK_ELEMENTS = 64, /* takes one cache line per byte of an element */
};

typedef void convert_row_fn(const struct stk_convert_plan *plan, const unsigned char *in,
                            unsigned char *out, const unsigned char *later);

static ALWAYS_INLINE void each_row(const struct stk_convert_plan *plan, const void *const *rows,
                                   uint32_t count, uint32_t ahead, void *out, convert_row_fn *row)
{
    size_t known = (size_t)count + ahead;
    size_t distance = plan->prefetch_rows > 0 ? plan->prefetch_rows : known;
    unsigned char *row_out = out;
    for (size_t k = 0; k < count; k++) {
        /* With no later row, the row prefetches itself: that saves a branch in the loops. */
        const unsigned char *later = k + distance < known ? rows[k + distance] : rows[k];
        row(plan, rows[k], row_out, later);
        row_out += plan->to_bytes;
    }
}

/* Number of elements of a later row that are prefetched. */
static ALWAYS_INLINE size_t fetched_elements(size_t count, struct pair pair)
{
    size_t most = PREFETCH_BYTES_MAX / pair.from_bytes;
    return count < most ? count : most;
}

/* Converts a row with one factor and bias in blocks, each of which prefetches as much of a later
 * row: prefetching a whole row at once would fill the miss queue and block the loads. */
static ALWAYS_INLINE void convert_uniform(const struct stk_convert_plan *plan,
                                          const unsigned char *in, unsigned char *out,
                                          const unsigned char *later, struct pair pair)
{
    const size_t count = plan->elements; /* for the compiler, out may alias the plan */
    const size_t fetched = fetched_elements(count, pair);
    lanes factor = lanes_of(plan->factor[0]), bias = lanes_of(plan->bias[0]);
    size_t i = 0;
    for (; i + BLOCK_ELEMENTS <= fetched; i += BLOCK_ELEMENTS) {
        prefetch_lines(later + i * pair.from_bytes, BLOCK_ELEMENTS * pair.from_bytes);
        convert_span(in + i * pair.from_bytes, out + i * pair.to_bytes, BLOCK_ELEMENTS, factor,
                     bias, pair);
    }
    prefetch_lines(later + i * pair.from_bytes, (fetched - i) * pair.from_bytes);
    __builtin_prefetch(later + fetched * pair.from_bytes - 1, 0, 3);
    convert_span(in + i * pair.from_bytes, out + i * pair.to_bytes, count - i, factor, bias, pair);
}

/* Converts a row whose factors repeat; the period is a multiple of LANES. */
static ALWAYS_INLINE void convert_repeating(const struct stk_convert_plan *plan,
                                            const unsigned char *in, unsigned char *out,
                                            const unsigned char *later, struct pair pair)
{
    const size_t count = plan->elements, period = plan->period;
    const size_t fetched = fetched_elements(count, pair);
    size_t i = 0, phase = 0;
    for (; i + LANES <= count; i += LANES) {
        if (i % BLOCK_ELEMENTS == 0 && i < fetched) {
            size_t block = fetched - i < BLOCK_ELEMENTS ? fetched - i : BLOCK_ELEMENTS;
            prefetch_lines(later + i * pair.from_bytes, block * pair.from_bytes);
        }
        lanes factor = lanes_load(plan->factor + phase), bias = lanes_load(plan->bias + phase);
        lanes x = pair.load(in + i * pair.from_bytes);
        pair.store(out + i * pair.to_bytes, lanes_fma(x, factor, bias), pair.may_be_nan);
        phase = phase + LANES < period ? phase + LANES : 0;
    }
    if (i < count)
        convert_tail(in + i * pair.from_bytes, out + i * pair.to_bytes, count - i,
                     lanes_load(plan->factor + phase), lanes_load(plan->bias + phase), pair);
}

static ALWAYS_INLINE void convert_row_nhwc(const struct stk_convert_plan *plan,
                                           const unsigned char *in, unsigned char *out,
                                           const unsigned char *later, struct pair pair)
{
    if (plan->period == PERIOD_UNIFORM)
        convert_uniform(plan, in, out, later, pair);
    else
        convert_repeating(plan, in, out, later, pair);
}

static ALWAYS_INLINE void convert_row_nchw(const struct stk_convert_plan *plan,
                                           const unsigned char *in, unsigned char *out,
                                           const unsigned char *later, struct pair pair)
{
    _Alignas(64) unsigned char planes[TILE_BYTES];
    size_t channels = plan->channels, pixels = plan->elements / channels;
    size_t tile = TILE_BYTES / (channels * pair.from_bytes) / 16 * 16; /* whole lanes */

    prefetch_row(later, plan->from_bytes);
    for (size_t first = 0; first < pixels; first += tile) {
        size_t count = pixels - first < tile ? pixels - first : tile;
        split(planes, tile * pair.from_bytes, in + first * channels * pair.from_bytes, count,
              channels, pair.from_bytes);
        for (size_t channel = 0; channel < channels; channel++)
            convert_span(planes + channel * tile * pair.from_bytes,
                         out + (channel * pixels + first) * pair.to_bytes, count,
                         lanes_of(plan->factor[channel]), lanes_of(plan->bias[channel]), pair);
    }
}

static_assert(TILE_BYTES >= 16 * STK_CHANNELS_MAX * ELEMENT_BYTES_MAX, "a tile has 16 pixels");

/* X(from, to, bytes of from, bytes of to, may be NaN) for every conversion. */
#define FROM_TYPES(X, to, to_bytes)                                                                \
    X(u8, to, 1, to_bytes, false)                                                                  \
    X(i8, to, 1, to_bytes, false)                                                                  \
    X(i16, to, 2, to_bytes, false)                                                                 \
    X(i32, to, 4, to_bytes, false)                                                                 \
    X(i64, to, 8, to_bytes, false)                                                                 \
    X(u16, to, 2, to_bytes, false)                                                                 \
    X(u32, to, 4, to_bytes, false)                                                                 \
    X(u64, to, 8, to_bytes, false)                                                                 \
    X(f16, to, 2, to_bytes, true)                                                                  \
    X(bf16, to, 2, to_bytes, true)                                                                 \
    X(f32, to, 4, to_bytes, true)                                                                  \
    X(f64, to, 8, to_bytes, true)
#define PAIRS(X)                                                                                   \
    FROM_TYPES(X, f32, 4)                                                                          \
    FROM_TYPES(X, f16, 2)                                                                          \
    FROM_TYPES(X, bf16, 2)

#define DEFINE_LAYOUT(layout, from, to, bytes_from, bytes_to, nan)                                 \
    static ALWAYS_INLINE void layout##_row_##from##_##to(                                          \
        const struct stk_convert_plan *plan, const unsigned char *in, unsigned char *out,          \
        const unsigned char *later)                                                                \
    {                                                                                              \
        const struct pair pair = { lanes_from_##from, lanes_to_##to, bytes_from, bytes_to, nan };  \
        convert_row_##layout(plan, in, out, later, pair);                                          \
    }                                                                                              \
    static void layout##_rows_##from##_##to(const struct stk_convert_plan *plan,                   \
                                            const void *const *rows, uint32_t count,               \
                                            uint32_t ahead, void *out)                             \
    {                                                                                              \
        each_row(plan, rows, count, ahead, out, layout##_row_##from##_##to);                       \
    }
#define DEFINE_PAIR(from, to, bytes_from, bytes_to, nan)                                           \
    DEFINE_LAYOUT(nhwc, from, to, bytes_from, bytes_to, nan)                                       \
    DEFINE_LAYOUT(nchw, from, to, bytes_from, bytes_to, nan)
PAIRS(DEFINE_PAIR)

/* Copies line by line; the last line ends with the row. For the 784 bytes of a digit this
 * beats memcpy(), which dispatches on the size at each call. */
static ALWAYS_INLINE void copy_row_nhwc(const struct stk_convert_plan *plan,
                                        const unsigned char *in, unsigned char *out,
                                        const unsigned char *later)
{
    const size_t bytes = plan->to_bytes;
    if (bytes < LINE_BYTES || bytes > PREFETCH_BYTES_MAX) {
        prefetch_row(later, bytes);
        memcpy(out, in, bytes);
        return;
    }
    for (size_t at = 0; at + LINE_BYTES <= bytes; at += LINE_BYTES) {
        __builtin_prefetch(later + at, 0, 3);
        memcpy(out + at, in + at, LINE_BYTES);
    }
    __builtin_prefetch(later + bytes - 1, 0, 3);
    memcpy(out + bytes - LINE_BYTES, in + bytes - LINE_BYTES, LINE_BYTES);
}

static void copy_rows_nhwc(const struct stk_convert_plan *plan, const void *const *rows,
                           uint32_t count, uint32_t ahead, void *out)
{
    each_row(plan, rows, count, ahead, out, copy_row_nhwc);
}

#define DEFINE_COPY_NCHW(bytes)                                                                    \
    static ALWAYS_INLINE void copy_row_nchw_##bytes(const struct stk_convert_plan *plan,           \
                                                    const unsigned char *in, unsigned char *out,   \
                                                    const unsigned char *later)                    \
    {                                                                                              \
        size_t pixels = plan->elements / plan->channels;                                           \
        prefetch_row(later, plan->from_bytes);                                                     \
        split(out, (bytes)*pixels, in, pixels, plan->channels, bytes);                             \
    }                                                                                              \
    static void copy_rows_nchw_##bytes(const struct stk_convert_plan *plan,                        \
                                       const void *const *rows, uint32_t count, uint32_t ahead,    \
                                       void *out)                                                  \
    {                                                                                              \
        each_row(plan, rows, count, ahead, out, copy_row_nchw_##bytes);                            \
    }
DEFINE_COPY_NCHW(1)
DEFINE_COPY_NCHW(2)
DEFINE_COPY_NCHW(4)
DEFINE_COPY_NCHW(8)

static stk_convert_rows_fn *choose_copy(const struct stk_convert_plan *plan, bool nchw)
{
    if (!nchw)
        return copy_rows_nhwc;
    switch (plan->to_bytes / plan->elements) {
    case 1:
        return copy_rows_nchw_1;
    case 2:
        return copy_rows_nchw_2;
    case 4:
        return copy_rows_nchw_4;
    default:
        return copy_rows_nchw_8;
    }
}

static stk_convert_rows_fn *choose_rows(const struct stk_convert_plan *plan)
{
#define ROW_OF_TABLE(dtype, layout, from)                                                          \
    [dtype] = { layout##_rows_##from##_f32, layout##_rows_##from##_f16,                            \
                layout##_rows_##from##_bf16 },
#define TABLE(layout)                                                                              \
    {                                                                                              \
        ROW_OF_TABLE(STOKER_DTYPE_UINT8, layout, u8)                                               \
        ROW_OF_TABLE(STOKER_DTYPE_INT8, layout, i8)                                                \
        ROW_OF_TABLE(STOKER_DTYPE_INT16, layout, i16)                                              \
        ROW_OF_TABLE(STOKER_DTYPE_INT32, layout, i32)                                              \
        ROW_OF_TABLE(STOKER_DTYPE_INT64, layout, i64)                                              \
        ROW_OF_TABLE(STOKER_DTYPE_FLOAT16, layout, f16)                                            \
        ROW_OF_TABLE(STOKER_DTYPE_BFLOAT16, layout, bf16)                                          \
        ROW_OF_TABLE(STOKER_DTYPE_FLOAT32, layout, f32)                                            \
        ROW_OF_TABLE(STOKER_DTYPE_FLOAT64, layout, f64)                                            \
        ROW_OF_TABLE(STOKER_DTYPE_UINT16, layout, u16)                                             \
        ROW_OF_TABLE(STOKER_DTYPE_UINT32, layout, u32)                                             \
        ROW_OF_TABLE(STOKER_DTYPE_UINT64, layout, u64)                                             \
        ROW_OF_TABLE(STOKER_DTYPE_BOOL, layout, u8)                                                \
    }
    static stk_convert_rows_fn *const table[2][STOKER_DTYPE_BOOL + 1][3] = { TABLE(nhwc),
                                                                             TABLE(nchw) };
    /* With one channel the layouts are equal and the plan is uniform. */
    bool nchw = plan->layout == STOKER_LAYOUT_NCHW && plan->channels > 1;
    if (plan->copies)
        return choose_copy(plan, nchw);
    return table[nchw][plan->from][to_index(plan->to)];
}

#endif
