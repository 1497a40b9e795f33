/* linear.c - the three products of a linear layer, copying no more than a cache holds.
 *
 * A training batch has few rows (tens) and the weights many, so packing all weights, as a general product does, would
 * cost as much as the arithmetic. */
#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include "trainer/backend/cpu/avx2/lanes.h"

enum { SAMPLES = 4, OUTPUTS = 3, DEPTH = 768, ROWS = 6, DEPTH_BLOCK = 256 };

/* sums[sample][output] += x . w over `length` floats, for 4 samples and 3 outputs. */
STK_AVX2 static void dots(const float *const *x, const float *const *w, uint64_t length,
                          float *sums)
{
    __m256 sum[SAMPLES][OUTPUTS];
    STK_UNROLL
    for (int n = 0; n < SAMPLES; n++)
        STK_UNROLL
    for (int to = 0; to < OUTPUTS; to++)
        sum[n][to] = _mm256_setzero_ps();
    for (uint64_t i = 0; i < length; i += STK_LANES) {
        /* Past the end, both factors are zero. */
        const __m256i mask = stk_first_lanes(length - i < STK_LANES ? length - i : STK_LANES);
        const bool whole = length - i >= STK_LANES;
        __m256 weights[OUTPUTS];
        STK_UNROLL
        for (int to = 0; to < OUTPUTS; to++)
            weights[to] = whole ? _mm256_loadu_ps(w[to] + i) : _mm256_maskload_ps(w[to] + i, mask);
        STK_UNROLL
        for (int n = 0; n < SAMPLES; n++) {
            const __m256 from =
                whole ? _mm256_loadu_ps(x[n] + i) : _mm256_maskload_ps(x[n] + i, mask);
            STK_UNROLL
            for (int to = 0; to < OUTPUTS; to++)
                sum[n][to] = _mm256_fmadd_ps(from, weights[to], sum[n][to]);
        }
    }
    STK_UNROLL
    for (int n = 0; n < SAMPLES; n++)
        STK_UNROLL
    for (int to = 0; to < OUTPUTS; to++)
        sums[n * OUTPUTS + to] = stk_sum_lanes(sum[n][to]);
}

struct linear {
    const float *x, *w;
    float *y;
    uint64_t count, in, out;
};

/* Add the inputs [from, from + length) to y of a block of samples and outputs. */
static void add_block(const struct linear *l, uint64_t n, uint64_t to, uint64_t from,
                      uint64_t length)
{
    const float *x[SAMPLES];
    const float *w[OUTPUTS];
    float sums[SAMPLES * OUTPUTS];
    const uint64_t samples = l->count - n < SAMPLES ? l->count - n : SAMPLES;
    const uint64_t outputs = l->out - to < OUTPUTS ? l->out - to : OUTPUTS;
    for (uint64_t i = 0; i < SAMPLES; i++)
        x[i] = l->x + (n + (i < samples ? i : 0)) * l->in + from;
    for (uint64_t i = 0; i < OUTPUTS; i++)
        w[i] = l->w + (to + (i < outputs ? i : 0)) * l->in + from;
    dots(x, w, length, sums);
    for (uint64_t i = 0; i < samples; i++)
        for (uint64_t k = 0; k < outputs; k++)
            l->y[(n + i) * l->out + to + k] += sums[i * OUTPUTS + k];
}

/* Pieces of inputs so short that those of all samples stay in the cache. */
void stk_avx2_linear_forward(const float *x, const float *w, const float *bias, bool relu, float *y,
                             uint32_t count, uint64_t in, uint64_t out)
{
    const struct linear l = { x, w, y, count, in, out };
    for (uint64_t n = 0; n < count; n++)
        for (uint64_t to = 0; to < out; to++)
            y[n * out + to] = bias != NULL ? bias[to] : 0;
    for (uint64_t from = 0; from < in; from += DEPTH)
        for (uint64_t to = 0; to < out; to += OUTPUTS)
            for (uint64_t n = 0; n < count; n += SAMPLES)
                add_block(&l, n, to, from, in - from < DEPTH ? in - from : DEPTH);
    for (uint64_t i = 0; relu && i < count * out; i++)
        y[i] = y[i] < 0 ? 0 : y[i];
}

/* A panel of b: 8 or 16 columns of up to 256 rows, copied side by side. In b, rows are often a multiple of 4096 bytes
 * apart and would evict each other from the L1 cache. */
struct panel {
    uint64_t column, lanes, first, depth;
    float b[DEPTH_BLOCK * 2 * STK_LANES];
};

STK_AVX2_INLINE void copy_panel(const struct stk_outer *o, struct panel *panel, const int vectors)
{
    const __m256i last = stk_first_lanes(panel->lanes - (uint64_t)(vectors - 1) * STK_LANES);
    const float *from = o->b + panel->first * o->columns + panel->column;
    float *to = panel->b;
    for (uint64_t k = 0; k < panel->depth; k++, from += o->columns, to += vectors * STK_LANES)
        STK_UNROLL
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_ps(to + v * STK_LANES, v + 1 < vectors || panel->lanes % STK_LANES == 0
                                                 ? _mm256_loadu_ps(from + v * STK_LANES)
                                                 : _mm256_maskload_ps(from + v * STK_LANES, last));
}

/* Six rows of the panel's columns of c; the pointers of rows that do not exist repeat the last. */
STK_AVX2_INLINE void outer_block(const struct stk_outer *o, const struct panel *panel, uint64_t row,
                                 const int vectors)
{
    const __m256i last = stk_first_lanes(panel->lanes - (uint64_t)(vectors - 1) * STK_LANES);
    const bool add = o->add || panel->first > 0;
    const uint64_t rows = o->rows - row < ROWS ? o->rows - row : ROWS;
    const float *a[ROWS];
    __m256 sums[ROWS][2];
    STK_UNROLL
    for (int i = 0; i < ROWS; i++) {
        a[i] = o->a + (row + ((uint64_t)i < rows ? (uint64_t)i : rows - 1)) * o->a_row +
               panel->first * o->a_step;
        STK_UNROLL
        for (int v = 0; v < vectors; v++)
            sums[i][v] = _mm256_setzero_ps();
    }
    const float *b = panel->b;
    for (uint64_t k = 0; k < panel->depth; k++, b += vectors * STK_LANES) {
        __m256 line[2];
        STK_UNROLL
        for (int v = 0; v < vectors; v++)
            line[v] = _mm256_loadu_ps(b + v * STK_LANES);
        STK_UNROLL
        for (int i = 0; i < ROWS; i++) {
            const __m256 factor = _mm256_broadcast_ss(a[i] + k * o->a_step);
            STK_UNROLL
            for (int v = 0; v < vectors; v++)
                sums[i][v] = _mm256_fmadd_ps(factor, line[v], sums[i][v]);
        }
    }
    STK_UNROLL
    for (int i = 0; i < ROWS; i++)
        STK_UNROLL
    for (int v = 0; v < vectors; v++) {
        if ((uint64_t)i >= rows)
            continue;
        float *c =
            o->c + (row + (uint64_t)i) * o->columns + panel->column + (uint64_t)v * STK_LANES;
        const __m256i mask = v + 1 < vectors ? _mm256_set1_epi32(-1) : last;
        const __m256 old = add ? _mm256_maskload_ps(c, mask) : _mm256_setzero_ps();
        _mm256_maskstore_ps(c, mask, _mm256_add_ps(old, sums[i][v]));
    }
}

STK_AVX2 static void outer_panel_16(const struct stk_outer *o, struct panel *panel)
{
    copy_panel(o, panel, 2);
    for (uint64_t row = 0; row < o->rows; row += ROWS)
        outer_block(o, panel, row, 2);
}

STK_AVX2 static void outer_panel_8(const struct stk_outer *o, struct panel *panel)
{
    copy_panel(o, panel, 1);
    for (uint64_t row = 0; row < o->rows; row += ROWS)
        outer_block(o, panel, row, 1);
}

void stk_avx2_outer(const struct stk_outer *o)
{
    struct panel panel;
    for (uint64_t column = 0; column < o->columns; column += 2 * STK_LANES)
        for (uint64_t first = 0; first < o->depth; first += DEPTH_BLOCK) {
            const uint64_t left = o->columns - column;
            const uint64_t deep = o->depth - first;
            panel.column = column;
            panel.lanes = left < 2 * STK_LANES ? left : 2 * STK_LANES;
            panel.first = first;
            panel.depth = deep < DEPTH_BLOCK ? deep : DEPTH_BLOCK;
            if (left > STK_LANES)
                outer_panel_16(o, &panel);
            else
                outer_panel_8(o, &panel);
        }
}
#endif
