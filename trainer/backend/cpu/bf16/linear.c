/* linear.c - the three products of a linear layer, copying no more than a cache holds.
 *
 * forward: neighbours in memory are the pairs that one instruction multiplies. The gradients add up over rows, two of
 * which are interleaved when they are copied to a panel. */
#include "trainer/backend/cpu/bf16/kernels.h"

#ifdef STK_HAVE_BF16
#include "kernels/float16.h"
#include "trainer/backend/cpu/bf16/lanes.h"

enum { SAMPLES = 4, OUTPUTS = 6, DEPTH = 2048, ROWS = 12, PAIRS_BLOCK = 128 };

/* sums[sample][output] += x . w over `length` elements, for 4 samples and 6 outputs. */
STK_BF16 static void dots(const uint16_t *const *x, const uint16_t *const *w, uint64_t length,
                          float *sums)
{
    __m512 sum[SAMPLES][OUTPUTS];
    STK_BF16_UNROLL
    for (int n = 0; n < SAMPLES; n++)
        STK_BF16_UNROLL
    for (int to = 0; to < OUTPUTS; to++)
        sum[n][to] = _mm512_setzero_ps();
    for (uint64_t i = 0; i < length; i += STK_BF16_LANES) {
        /* Past the end, both factors are zero. */
        const __mmask32 lanes = stk_bf16_first_lanes(length - i);
        __m512i from[SAMPLES];
        STK_BF16_UNROLL
        for (int n = 0; n < SAMPLES; n++)
            from[n] = _mm512_maskz_loadu_epi16(lanes, x[n] + i);
        STK_BF16_UNROLL
        for (int to = 0; to < OUTPUTS; to++) {
            const __m512i weights = _mm512_maskz_loadu_epi16(lanes, w[to] + i);
            STK_BF16_UNROLL
            for (int n = 0; n < SAMPLES; n++)
                sum[n][to] = stk_bf16_dot(sum[n][to], from[n], weights);
        }
    }
    STK_BF16_UNROLL
    for (int n = 0; n < SAMPLES; n++)
        STK_BF16_UNROLL
    for (int to = 0; to < OUTPUTS; to++)
        sums[n * OUTPUTS + to] = _mm512_reduce_add_ps(sum[n][to]);
}

/* Add the inputs [from, from + length) to the sums of a block of samples and outputs. */
static void add_block(const struct stk_bf16_linear *l, uint64_t n, uint64_t to, uint64_t from,
                      uint64_t length)
{
    const uint16_t *x[SAMPLES];
    const uint16_t *w[OUTPUTS];
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
            l->sums[(n + i) * l->out + to + k] += sums[i * OUTPUTS + k];
}

STK_BF16 static void round_sums(const struct stk_bf16_linear *l)
{
    const uint64_t count = l->count * l->out;
    for (uint64_t i = 0; i < count; i += STK_BF16_FLOATS) {
        const __mmask16 lanes = stk_bf16_first_floats(count - i);
        __m512 sum = _mm512_maskz_loadu_ps(lanes, l->sums + i);
        if (l->relu) /* in this order NaN stays */
            sum = _mm512_max_ps(_mm512_setzero_ps(), sum);
        stk_bf16_store_half(l->y + i, lanes, stk_bf16_narrow(sum));
    }
}

/* Pieces of inputs so short that the weights of a block stay in the L1 cache, and all samples in the L2 cache. */
void stk_bf16_linear_forward(const struct stk_bf16_linear *l)
{
    for (uint64_t n = 0; n < l->count; n++)
        for (uint64_t to = 0; to < l->out; to++)
            l->sums[n * l->out + to] = l->bias != NULL ? float_of_bfloat16(l->bias[to]) : 0;
    for (uint64_t from = 0; from < l->in; from += DEPTH)
        for (uint64_t to = 0; to < l->out; to += OUTPUTS)
            for (uint64_t n = 0; n < l->count; n += SAMPLES)
                add_block(l, n, to, from, l->in - from < DEPTH ? l->in - from : DEPTH);
    round_sums(l);
}

/* A panel of b: 32 columns of up to 256 rows, interleaved in pairs. In b, rows are often a multiple of 4096 bytes apart
 * and would evict each other from the L1 cache. */
struct panel {
    uint64_t column;
    __mmask32 lanes;
    uint64_t first, pairs;
    uint16_t b[PAIRS_BLOCK * 2 * STK_BF16_LANES] __attribute__((aligned(64)));
};

STK_BF16 static void copy_panel(const struct stk_bf16_outer *o, struct panel *panel)
{
    const uint16_t *from = o->b + 2 * panel->first * o->columns + panel->column;
    uint16_t *to = panel->b;
    for (uint64_t pair = 0; pair < panel->pairs; pair++, from += 2 * o->columns) {
        const bool both = 2 * (panel->first + pair) + 1 < o->depth;
        const __m512i one = _mm512_maskz_loadu_epi16(panel->lanes, from);
        const __m512i two = both ? _mm512_maskz_loadu_epi16(panel->lanes, from + o->columns)
                                 : _mm512_setzero_si512();
        _mm512_store_si512(to, _mm512_unpacklo_epi16(one, two));
        _mm512_store_si512(to + STK_BF16_LANES, _mm512_unpackhi_epi16(one, two));
        to += 2 * STK_BF16_LANES;
    }
}

/* Twelve rows of the panel's columns; the pointers of rows that do not exist repeat the last. */
STK_BF16 static void outer_block(const struct stk_bf16_outer *o, const struct panel *panel,
                                 uint64_t row, float *to, uint64_t to_row)
{
    const uint64_t rows = o->rows - row < ROWS ? o->rows - row : ROWS;
    const uint64_t a_row = (o->depth + 1) / 2 * 2;
    const uint16_t *a[ROWS];
    __m512 sums[ROWS][2];
    STK_BF16_UNROLL
    for (int i = 0; i < ROWS; i++) {
        a[i] =
            o->a + (row + ((uint64_t)i < rows ? (uint64_t)i : rows - 1)) * a_row + 2 * panel->first;
        sums[i][0] = sums[i][1] = _mm512_setzero_ps();
    }
    const uint16_t *b = panel->b;
    for (uint64_t pair = 0; pair < panel->pairs; pair++, b += 2 * STK_BF16_LANES) {
        const __m512i low = _mm512_load_si512(b);
        const __m512i high = _mm512_load_si512(b + STK_BF16_LANES);
        STK_BF16_UNROLL
        for (int i = 0; i < ROWS; i++) {
            const __m512i factors = stk_bf16_pair(a[i] + 2 * pair);
            sums[i][0] = stk_bf16_dot(sums[i][0], factors, low);
            sums[i][1] = stk_bf16_dot(sums[i][1], factors, high);
        }
    }
    STK_BF16_UNROLL
    for (int i = 0; i < ROWS; i++) {
        if ((uint64_t)i >= rows)
            continue;
        const struct stk_bf16_columns columns = stk_bf16_in_order(sums[i][0], sums[i][1]);
        float *at = to + (row + (uint64_t)i) * to_row;
        stk_bf16_add_floats(at, (__mmask16)panel->lanes, columns.first);
        stk_bf16_add_floats(at + STK_BF16_FLOATS, (__mmask16)(panel->lanes >> 16), columns.last);
    }
}

/* The sums of a panel's columns, rounded. */
STK_BF16 static void round_columns(const struct stk_bf16_outer *o, const struct panel *panel)
{
    for (uint64_t row = 0; row < o->rows; row++) {
        const float *sums = o->sums + row * STK_BF16_LANES;
        stk_bf16_store(
            o->c + row * o->columns + panel->column, panel->lanes,
            stk_bf16_narrow_two(_mm512_loadu_ps(sums), _mm512_loadu_ps(sums + STK_BF16_FLOATS)));
    }
}

void stk_bf16_outer(const struct stk_bf16_outer *o)
{
    struct panel panel;
    const uint64_t pairs = (o->depth + 1) / 2;
    const bool rounded = o->c != NULL;
    for (uint64_t column = 0; column < o->columns; column += STK_BF16_LANES) {
        const uint64_t left = o->columns - column;
        float *to = rounded ? o->sums : o->sums + column;
        panel.column = column;
        panel.lanes = left >= STK_BF16_LANES ? 0xFFFFFFFF : (1U << left) - 1;
        if (rounded)
            memset(to, 0, o->rows * STK_BF16_LANES * sizeof(float));
        for (panel.first = 0; panel.first < pairs; panel.first += PAIRS_BLOCK) {
            const uint64_t deep = pairs - panel.first;
            panel.pairs = deep < PAIRS_BLOCK ? deep : PAIRS_BLOCK;
            copy_panel(o, &panel);
            for (uint64_t row = 0; row < o->rows; row += ROWS)
                outer_block(o, &panel, row, to, rounded ? STK_BF16_LANES : o->columns);
        }
        if (rounded)
            round_columns(o, &panel);
    }
}
#endif
