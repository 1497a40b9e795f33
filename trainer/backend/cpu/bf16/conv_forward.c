/* conv_forward.c - convolution as a product of pixels and filters, in registers.
 *
 *             filters of a panel (16, 32, 48 or 64)
 *   pixel 0   [ ........ | ........ ]      += x[pixel][2 i, 2 i + 1] . packed[i][filter]
 *   ...       [    rows x vectors   ]         for each kernel row, for each pair i of its run
 *   pixel 5   [ ........ | ........ ]
 *
 * x is not copied: a kernel row of a pixel is one run of elements. If its length is odd, the last pair has a zero. */
#include "trainer/backend/cpu/bf16/kernels.h"

#ifdef STK_HAVE_BF16
#include "kernels/float16.h"
#include "loader/base/thread_team.h"
#include "trainer/backend/cpu/bf16/lanes.h"

#include <string.h>

enum { ROWS_MAX = 12, VECTORS_MAX = 4 };

/* The filters of a panel: as many vectors as its neighbours, or one more. */
struct panel {
    uint32_t first_vector, vectors;
};

static uint32_t vectors_of(const struct stk_bf16_conv *size)
{
    return (size->filters + STK_BF16_FLOATS - 1) / STK_BF16_FLOATS;
}

static uint32_t panels_of(const struct stk_bf16_conv *size)
{
    return (vectors_of(size) + VECTORS_MAX - 1) / VECTORS_MAX;
}

static struct panel panel_at(const struct stk_bf16_conv *size, uint32_t index)
{
    const uint32_t each = vectors_of(size) / panels_of(size);
    const uint32_t larger = vectors_of(size) % panels_of(size); /* panels with one more */
    return (struct panel){ index * each + (index < larger ? index : larger),
                           each + (index < larger) };
}

static uint64_t pairs_of(const struct stk_bf16_conv *size)
{
    return (size->run + UINT64_C(1)) / 2;
}

/* Elements of the packed weights for each filter. */
static uint64_t packed_taps(const struct stk_bf16_conv *size)
{
    return size->kernel_h * pairs_of(size) * 2;
}

uint64_t stk_bf16_conv_packed_bytes(const struct stk_bf16_conv *size)
{
    return packed_taps(size) * vectors_of(size) * STK_BF16_FLOATS * sizeof(uint16_t);
}

static void pack_panel(const struct stk_bf16_conv *size, struct panel panel,
                       const uint16_t *weights, uint16_t *packed)
{
    const uint64_t width = 2 * panel.vectors * STK_BF16_FLOATS;
    uint16_t *to = packed + panel.first_vector * STK_BF16_FLOATS * packed_taps(size);
    for (uint32_t lane = 0; lane < width / 2; lane++) {
        const uint32_t filter = panel.first_vector * STK_BF16_FLOATS + lane;
        const uint16_t *from = weights + (uint64_t)filter * size->kernel_h * size->run;
        for (uint32_t r = 0; r < size->kernel_h; r++)
            for (uint64_t i = 0; i < 2 * pairs_of(size); i++)
                to[(r * pairs_of(size) + i / 2) * width + 2 * lane + i % 2] =
                    filter < size->filters && i < size->run ? from[r * size->run + i] : 0;
    }
}

void stk_bf16_conv_pack(const struct stk_bf16_conv *size, const uint16_t *weights, uint16_t *packed,
                        uint32_t thread, uint32_t threads)
{
    const struct stk_share share = stk_share_of(panels_of(size), thread, threads);
    for (uint64_t index = share.begin; index < share.end; index++)
        pack_panel(size, panel_at(size, (uint32_t)index), weights, packed);
}

/* One panel's view of the sample. */
struct view {
    const struct stk_bf16_conv *size;
    const uint16_t *packed;
    const float *bias; /* one per lane of the panel, padded */
    bool relu;
    uint16_t *y;    /* the panel's first filter of pixel 0 */
    uint32_t lanes; /* filters in the panel */
};

/* The next pair of each pixel's run. */
STK_BF16_INLINE void add_pair(__m512 sums[ROWS_MAX][VECTORS_MAX], const uint16_t *const *pixels,
                              uint64_t at, const uint16_t *packed, const bool whole, const int rows,
                              const int vectors)
{
    __m512i filters[VECTORS_MAX];
    STK_BF16_UNROLL
    for (int v = 0; v < vectors; v++)
        filters[v] = _mm512_loadu_si512(packed + v * STK_BF16_LANES);
    STK_BF16_UNROLL
    for (int row = 0; row < rows; row++) {
        const __m512i x =
            whole ? stk_bf16_pair(pixels[row] + at) : _mm512_set1_epi32(pixels[row][at]);
        STK_BF16_UNROLL
        for (int v = 0; v < vectors; v++)
            sums[row][v] = stk_bf16_dot(sums[row][v], x, filters[v]);
    }
}

STK_BF16_INLINE void store_tile(const struct view *view, __m512 sums[ROWS_MAX][VECTORS_MAX],
                                uint16_t *const *to, uint32_t filled, const int rows,
                                const int vectors)
{
    STK_BF16_UNROLL
    for (int row = 0; row < rows; row++)
        STK_BF16_UNROLL
    for (int v = 0; v < vectors; v++) {
        if ((uint32_t)row >= filled)
            continue;
        /* max(0, sum) in this order keeps NaN. */
        const __m512 y =
            view->relu ? _mm512_max_ps(_mm512_setzero_ps(), sums[row][v]) : sums[row][v];
        const uint32_t first = (uint32_t)v * STK_BF16_FLOATS;
        uint16_t *at = to[row] + first;
        stk_bf16_store_half(at, stk_bf16_first_floats(view->lanes - first), stk_bf16_narrow(y));
    }
}

/* y of `filled` pixels (at most rows; the pointers of the rest repeat the last). */
STK_BF16_INLINE void tile(const struct view *view, const uint16_t *const *pixels,
                          uint16_t *const *to, uint32_t filled, const int rows, const int vectors)
{
    const uint64_t run = view->size->run;
    const uint64_t row_elements = (uint64_t)view->size->w * view->size->c;
    __m512 sums[ROWS_MAX][VECTORS_MAX];
    STK_BF16_UNROLL
    for (int row = 0; row < rows; row++)
        STK_BF16_UNROLL
    for (int v = 0; v < vectors; v++)
        sums[row][v] = _mm512_loadu_ps(view->bias + v * STK_BF16_FLOATS);

    const uint16_t *packed = view->packed;
    for (uint32_t r = 0; r < view->size->kernel_h; r++) {
        uint64_t at = r * row_elements;
        for (const uint64_t end = at + run / 2 * 2; at < end; at += 2) {
            add_pair(sums, pixels, at, packed, true, rows, vectors);
            packed += vectors * STK_BF16_LANES;
        }
        if (run % 2 != 0) {
            add_pair(sums, pixels, at, packed, false, rows, vectors);
            packed += vectors * STK_BF16_LANES;
        }
    }
    store_tile(view, sums, to, filled, rows, vectors);
}

STK_BF16_INLINE void panel_forward(const struct view *view, const uint16_t *x, const int rows,
                                   const int vectors)
{
    const struct stk_bf16_conv *size = view->size;
    const uint32_t pixels = size->out_h * size->out_w;
    uint32_t oh = 0, ow = 0;
    for (uint32_t first = 0; first < pixels; first += (uint32_t)rows) {
        const uint16_t *from[ROWS_MAX];
        uint16_t *to[ROWS_MAX];
        const uint32_t left = pixels - first;
        const uint32_t filled = left < (uint32_t)rows ? left : (uint32_t)rows;
        for (uint32_t row = 0; row < (uint32_t)rows; row++) {
            if (row >= filled) {
                from[row] = from[filled - 1];
                to[row] = to[filled - 1];
                continue;
            }
            const uint64_t pixel =
                (uint64_t)oh * size->stride_h * size->w + (uint64_t)ow * size->stride_w;
            from[row] = x + pixel * size->c;
            to[row] = view->y + (uint64_t)(first + row) * size->filters;
            if (++ow == size->out_w) {
                ow = 0;
                oh++;
            }
        }
        tile(view, from, to, filled, rows, vectors);
    }
}

/* Each has up to 24 sums, which leaves registers for the filters and a pixel. */
STK_BF16 static void forward_16(const struct view *view, const uint16_t *x)
{
    panel_forward(view, x, 12, 1);
}

STK_BF16 static void forward_32(const struct view *view, const uint16_t *x)
{
    panel_forward(view, x, 12, 2);
}

STK_BF16 static void forward_48(const struct view *view, const uint16_t *x)
{
    panel_forward(view, x, 8, 3);
}

STK_BF16 static void forward_64(const struct view *view, const uint16_t *x)
{
    panel_forward(view, x, 6, 4);
}

void stk_bf16_conv_forward(const struct stk_bf16_conv *size, const uint16_t *x,
                           const uint16_t *packed, const uint16_t *bias, bool relu, uint16_t *y)
{
    static void (*const forward[VECTORS_MAX])(
        const struct view *, const uint16_t *) = { forward_16, forward_32, forward_48, forward_64 };
    for (uint32_t index = 0; index < panels_of(size); index++) {
        const struct panel panel = panel_at(size, index);
        const uint32_t first = panel.first_vector * STK_BF16_FLOATS;
        const uint32_t left = size->filters - first;
        const uint32_t width = panel.vectors * STK_BF16_FLOATS;
        float padded[VECTORS_MAX * STK_BF16_FLOATS] = { 0 };
        const uint32_t lanes = left < width ? left : width;
        for (uint32_t i = 0; bias != NULL && i < lanes; i++)
            padded[i] = float_of_bfloat16(bias[first + i]);
        const struct view view = { .size = size,
                                   .packed = packed + first * packed_taps(size),
                                   .bias = padded,
                                   .relu = relu,
                                   .y = y + first,
                                   .lanes = lanes };
        forward[panel.vectors - 1](&view, x);
    }
}
#endif
