/* conv_forward.c - convolution as a product of pixels and filters, in registers.
 *
 *             filters of a panel (8, 16 or 24)
 *   pixel 0   [ ........ | ........ ]      += x[pixel][i] * packed[i][filter]
 *   ...       [    rows x vectors   ]         for each kernel row, for i in its run
 *   pixel 5   [ ........ | ........ ]
 *
 * x is not copied: a kernel row of a pixel is one run of floats. */
#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include "loader/base/thread_team.h"
#include "trainer/backend/cpu/avx2/lanes.h"

#include <string.h>

enum { ROWS_MAX = 8, VECTORS_MAX = 3 };

/* The filters of a panel. An odd number of vectors starts with a panel of three. */
struct panel {
    uint32_t first_vector, vectors;
};

static uint32_t vectors_of(const struct stk_conv_sizes *size)
{
    return (size->filters + STK_LANES - 1) / STK_LANES;
}

static uint32_t panels_of(const struct stk_conv_sizes *size)
{
    return vectors_of(size) == 1 ? 1 : vectors_of(size) / 2;
}

static struct panel panel_at(const struct stk_conv_sizes *size, uint32_t index)
{
    const uint32_t vectors = vectors_of(size);
    if (vectors == 1)
        return (struct panel){ 0, 1 };
    const uint32_t odd = vectors % 2;
    if (index == 0)
        return (struct panel){ 0, 2 + odd };
    return (struct panel){ 2 * index + odd, 2 };
}

static uint64_t taps_of(const struct stk_conv_sizes *size)
{
    return (uint64_t)size->kernel_h * size->run;
}

uint64_t stk_avx2_conv_packed_floats(const struct stk_conv_sizes *size)
{
    return taps_of(size) * vectors_of(size) * STK_LANES;
}

static void pack_panel(const struct stk_conv_sizes *size, struct panel panel, const float *weights,
                       float *packed)
{
    const uint64_t taps = taps_of(size);
    const uint32_t width = panel.vectors * STK_LANES;
    float *to = packed + panel.first_vector * STK_LANES * taps;
    for (uint32_t lane = 0; lane < width; lane++) {
        const uint32_t filter = panel.first_vector * STK_LANES + lane;
        for (uint64_t tap = 0; tap < taps; tap++)
            to[tap * width + lane] = filter < size->filters ? weights[filter * taps + tap] : 0;
    }
}

void stk_avx2_conv_pack(const struct stk_conv_sizes *size, const float *weights, float *packed,
                        uint32_t thread, uint32_t threads)
{
    const struct stk_share share = stk_share_of(panels_of(size), thread, threads);
    for (uint64_t index = share.begin; index < share.end; index++)
        pack_panel(size, panel_at(size, (uint32_t)index), weights, packed);
}

/* One panel's view of the sample. */
struct view {
    const struct stk_conv_sizes *size;
    const float *packed;
    const float *bias; /* one per lane of the panel, padded */
    bool relu;
    float *y;       /* the panel's first filter of pixel 0 */
    uint32_t lanes; /* filters in the panel */
};

/* y of `filled` pixels (at most rows; the pointers of the rest repeat the last). */
STK_AVX2_INLINE void tile(const struct view *view, const float *const *pixels, float *const *to,
                          uint32_t filled, const int rows, const int vectors)
{
    const uint64_t run = view->size->run;
    const uint64_t row_floats = (uint64_t)view->size->w * view->size->c;
    __m256 sums[ROWS_MAX][VECTORS_MAX];
    STK_UNROLL
    for (int row = 0; row < rows; row++)
        STK_UNROLL
    for (int v = 0; v < vectors; v++)
        sums[row][v] = _mm256_loadu_ps(view->bias + v * STK_LANES);

    const float *packed = view->packed;
    for (uint32_t r = 0; r < view->size->kernel_h; r++)
        for (uint64_t i = r * row_floats; i < r * row_floats + run; i++) {
            __m256 filters[VECTORS_MAX];
            STK_UNROLL
            for (int v = 0; v < vectors; v++)
                filters[v] = _mm256_loadu_ps(packed + v * STK_LANES);
            packed += vectors * STK_LANES;
            STK_UNROLL
            for (int row = 0; row < rows; row++) {
                const __m256 x = _mm256_broadcast_ss(pixels[row] + i);
                STK_UNROLL
                for (int v = 0; v < vectors; v++)
                    sums[row][v] = _mm256_fmadd_ps(x, filters[v], sums[row][v]);
            }
        }

    STK_UNROLL
    for (int row = 0; row < rows; row++)
        STK_UNROLL
    for (int v = 0; v < vectors; v++) {
        if ((uint32_t)row >= filled || (uint32_t)v * STK_LANES >= view->lanes)
            continue;
        /* max(0, sum) in this order keeps NaN. */
        const __m256 y =
            view->relu ? _mm256_max_ps(_mm256_setzero_ps(), sums[row][v]) : sums[row][v];
        const uint32_t left = view->lanes - (uint32_t)v * STK_LANES;
        if (left >= STK_LANES)
            _mm256_storeu_ps(to[row] + v * STK_LANES, y);
        else
            _mm256_maskstore_ps(to[row] + v * STK_LANES, stk_first_lanes(left), y);
    }
}

STK_AVX2_INLINE void panel_forward(const struct view *view, const float *x, const int rows,
                                   const int vectors)
{
    const struct stk_conv_sizes *size = view->size;
    const uint32_t pixels = size->out_h * size->out_w;
    uint32_t oh = 0, ow = 0;
    for (uint32_t first = 0; first < pixels; first += (uint32_t)rows) {
        const float *from[ROWS_MAX];
        float *to[ROWS_MAX];
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

STK_AVX2 static void forward_8(const struct view *view, const float *x)
{
    panel_forward(view, x, 8, 1);
}

STK_AVX2 static void forward_16(const struct view *view, const float *x)
{
    panel_forward(view, x, 6, 2);
}

STK_AVX2 static void forward_24(const struct view *view, const float *x)
{
    panel_forward(view, x, 4, 3);
}

void stk_avx2_conv_forward(const struct stk_conv_sizes *size, const float *x, const float *packed,
                           const float *bias, bool relu, float *y)
{
    static void (*const forward[VECTORS_MAX])(
        const struct view *, const float *) = { forward_8, forward_16, forward_24 };
    for (uint32_t index = 0; index < panels_of(size); index++) {
        const struct panel panel = panel_at(size, index);
        const uint32_t first = panel.first_vector * STK_LANES;
        const uint32_t left = size->filters - first;
        const uint32_t width = panel.vectors * STK_LANES;
        float padded[VECTORS_MAX * STK_LANES] = { 0 };
        const uint32_t lanes = left < width ? left : width;
        if (bias != NULL)
            memcpy(padded, bias + first, lanes * sizeof(float));
        const struct view view = { .size = size,
                                   .packed = packed + first * taps_of(size),
                                   .bias = padded,
                                   .relu = relu,
                                   .y = y + first,
                                   .lanes = lanes };
        forward[panel.vectors - 1](&view, x);
    }
}
#endif
