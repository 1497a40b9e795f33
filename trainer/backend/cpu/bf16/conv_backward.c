/* conv_backward.c - gradients of a convolution, skipping the zeros of dy.
 *
 *   data      list of each pixel's filters  with dy != 0:  dx[kernel rows] += sum of dy * filter's rows
 *   weights   list of each filter's pixels  with dy != 0:  filter's rows   += sum of dy * x's rows
 *
 * A list is processed two entries at a time: the rows that they multiply are interleaved, and one instruction adds both
 * products. Sums of up to 3 kernel rows of up to 96 elements stay in registers meanwhile. Runs too short for that (few
 * input channels: a stem) are summed with filters in the lanes: see conv_stem.c. */
#include "trainer/backend/cpu/bf16/conv_backward.h"

#ifdef STK_HAVE_BF16
#include "loader/base/thread_team.h"
#include "trainer/backend/cpu/bf16/lanes.h"

#include <string.h>

/* A piece is 32 elements of a kernel row, the last of a row may be shorter. A block is rows x pieces. */
enum { ROWS_MAX = 3, PIECES_MAX = 3 };

/* The non-zero values of dy in one list, and where the run that each multiplies starts. Of even length: the last value
 * may be 0. */
struct list {
    const uint32_t *at; /* elements */
    const uint16_t *values;
    uint32_t count;
};

static uint32_t pixels_of(const struct stk_bf16_conv *size)
{
    return size->out_h * size->out_w;
}

static uint64_t row_elements(const struct stk_bf16_conv *size)
{
    return (uint64_t)size->w * size->c;
}

static uint64_t padded_run(const struct stk_bf16_conv *size)
{
    return (size->run + UINT64_C(31)) / STK_BF16_LANES * STK_BF16_LANES;
}

static uint64_t round_to_line(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* ---- lists ---- */

/* All lists of a sample side by side: those of `lists` pixels or filters, of up to `entries` entries each. A list is
 * written in whole vectors, which may exceed its end by one. */
struct lists {
    uint32_t *at;
    uint16_t *values;
    uint32_t *counts;
};

static uint64_t list_room(uint64_t entries)
{
    return entries + 2 + STK_BF16_FLOATS;
}

static uint64_t lists_bytes(uint64_t lists, uint64_t entries)
{
    const uint64_t most = lists * list_room(entries);
    return round_to_line(most * sizeof(uint32_t)) + round_to_line(most * sizeof(uint16_t)) +
           round_to_line(lists * sizeof(uint32_t));
}

static struct lists lists_in(void *scratch, uint64_t lists, uint64_t entries)
{
    uint8_t *bytes = scratch;
    const uint64_t most = lists * list_room(entries);
    struct lists found = { .at = scratch };
    bytes += round_to_line(most * sizeof(uint32_t));
    found.values = (uint16_t *)(void *)bytes;
    bytes += round_to_line(most * sizeof(uint16_t));
    found.counts = (uint32_t *)(void *)bytes;
    return found;
}

/* Append a zero if the length is odd. Returns the even length. */
static uint32_t make_even(uint32_t *at, uint16_t *values, uint32_t count)
{
    if (count % 2 == 0)
        return count;
    at[count] = at[count - 1];
    values[count] = 0;
    return count + 1;
}

/* dy of each pixel as a list of filters, which start at `filter_elements` x their number. */
STK_BF16 static void list_filters(const struct stk_bf16_conv *size, const uint16_t *dy,
                                  uint32_t filter_elements, const struct lists *lists)
{
    const __m512i steps =
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32((int)filter_elements));
    const uint64_t room = list_room(size->filters);
    for (uint32_t pixel = 0; pixel < pixels_of(size); pixel++, dy += size->filters) {
        uint32_t *at = lists->at + pixel * room;
        uint16_t *values = lists->values + pixel * room;
        uint32_t count = 0;
        for (uint32_t first = 0; first < size->filters; first += STK_BF16_FLOATS) {
            const __mmask16 lanes = stk_bf16_first_floats(size->filters - first);
            const __m512i found =
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, dy + first));
            const __mmask16 set = _mm512_test_epi32_mask(found, _mm512_set1_epi32(0x7FFF));
            const __m512i starts =
                _mm512_add_epi32(steps, _mm512_set1_epi32((int)(first * filter_elements)));
            _mm512_storeu_si512(at + count, _mm512_maskz_compress_epi32(set, starts));
            _mm256_storeu_si256((__m256i_u *)(values + count),
                                _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(set, found)));
            count += (uint32_t)__builtin_popcount(set);
        }
        lists->counts[pixel] = make_even(at, values, count);
    }
}

/* Start of the input of output pixel `pixel`. */
static uint64_t reads_at(const struct stk_bf16_conv *size, uint32_t pixel)
{
    const uint64_t row = (uint64_t)(pixel / size->out_w) * size->stride_h;
    const uint64_t column = (uint64_t)(pixel % size->out_w) * size->stride_w;
    return (row * size->w + column) * size->c;
}

/* dy of one sample as a list of pixels for each filter. */
STK_BF16 static void list_pixels(const struct stk_bf16_conv *size, const uint16_t *dy,
                                 const struct lists *lists)
{
    const uint64_t room = list_room(pixels_of(size));
    memset(lists->counts, 0, size->filters * sizeof(*lists->counts));
    for (uint32_t pixel = 0; pixel < pixels_of(size); pixel++, dy += size->filters) {
        const uint32_t at = (uint32_t)reads_at(size, pixel);
        for (uint32_t first = 0; first < size->filters; first += STK_BF16_LANES) {
            const __mmask32 lanes = stk_bf16_first_lanes(size->filters - first);
            unsigned set = _mm512_test_epi16_mask(_mm512_maskz_loadu_epi16(lanes, dy + first),
                                                  _mm512_set1_epi16(0x7FFF));
            for (; set != 0; set &= set - 1) {
                const uint32_t filter = first + (uint32_t)__builtin_ctz(set);
                const uint64_t entry = filter * room + lists->counts[filter]++;
                lists->at[entry] = at;
                lists->values[entry] = dy[filter];
            }
        }
    }
    for (uint32_t filter = 0; filter < size->filters; filter++)
        lists->counts[filter] = make_even(lists->at + filter * room, lists->values + filter * room,
                                          lists->counts[filter]);
}

/* ---- sums over a list ---- */

/* A block of rows x pieces. The last piece of a row has the lanes of `last`. */
struct block {
    const uint16_t *from; /* what is multiplied: the block of entry `at` starts at from + at */
    uint64_t from_row;    /* distance of its rows */
    float *to;            /* what is added to */
    uint64_t to_row;
    __mmask32 last;
};

/* Sums of the block: low and high of each piece. shuffled: see add_list. */
STK_BF16_INLINE void sum_list(const struct list *list, const struct block *block,
                              __m512 sums[ROWS_MAX][2 * PIECES_MAX], const bool shuffled,
                              const int rows, const int pieces)
{
    STK_BF16_UNROLL
    for (int row = 0; row < rows; row++)
        STK_BF16_UNROLL
    for (int v = 0; v < 2 * pieces; v++)
        sums[row][v] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < list->count; i += 2) {
        const __m512i values = stk_bf16_pair(list->values + i);
        const uint16_t *one = block->from + list->at[i];
        const uint16_t *two = block->from + list->at[i + 1];
        STK_BF16_UNROLL
        for (int row = 0; row < rows; row++, one += block->from_row, two += block->from_row)
            STK_BF16_UNROLL
        for (int piece = 0; piece < pieces; piece++) {
            const __mmask32 lanes = shuffled || piece + 1 < pieces ? 0xFFFFFFFF : block->last;
            const __m512i a = _mm512_maskz_loadu_epi16(lanes, one + piece * STK_BF16_LANES);
            const __m512i b = _mm512_maskz_loadu_epi16(lanes, two + piece * STK_BF16_LANES);
            __m512 *sum = &sums[row][2 * piece];
            sum[0] = stk_bf16_dot(sum[0], values, _mm512_unpacklo_epi16(a, b));
            sum[1] = stk_bf16_dot(sum[1], values, _mm512_unpackhi_epi16(a, b));
        }
    }
}

/* shuffled: the rows at `from` were shuffled, so that the sums are in order, and filled up with zeros. */
STK_BF16_INLINE void add_list(const struct list *list, const struct block *block,
                              const bool shuffled, const int rows, const int pieces)
{
    __m512 sums[ROWS_MAX][2 * PIECES_MAX];
    sum_list(list, block, sums, shuffled, rows, pieces);
    STK_BF16_UNROLL
    for (int row = 0; row < rows; row++)
        STK_BF16_UNROLL
    for (int piece = 0; piece < pieces; piece++) {
        struct stk_bf16_columns columns = { sums[row][2 * piece], sums[row][2 * piece + 1] };
        const __mmask32 lanes = piece + 1 < pieces ? 0xFFFFFFFF : block->last;
        float *to = block->to + (uint64_t)row * block->to_row + piece * STK_BF16_LANES;
        if (!shuffled)
            columns = stk_bf16_in_order(columns.first, columns.last);
        stk_bf16_add_floats(to, (__mmask16)lanes, columns.first);
        stk_bf16_add_floats(to + STK_BF16_FLOATS, (__mmask16)(lanes >> 16), columns.last);
    }
}

typedef void add_block(const struct list *list, const struct block *block);
#define ADD_BLOCK(rows, pieces)                                                                    \
    STK_BF16 static void add_shuffled_##rows##_##pieces(const struct list *list,                   \
                                                        const struct block *block)                 \
    {                                                                                              \
        add_list(list, block, true, rows, pieces);                                                 \
    }                                                                                              \
    STK_BF16 static void add_##rows##_##pieces(const struct list *list, const struct block *block) \
    {                                                                                              \
        add_list(list, block, false, rows, pieces);                                                \
    }
ADD_BLOCK(1, 1)
ADD_BLOCK(1, 2)
ADD_BLOCK(1, 3)
ADD_BLOCK(2, 1)
ADD_BLOCK(2, 2)
ADD_BLOCK(2, 3)
ADD_BLOCK(3, 1)
ADD_BLOCK(3, 2)
ADD_BLOCK(3, 3)
#define ADD_ROWS(prefix, rows)                                                                     \
    {                                                                                              \
        prefix##_##rows##_1, prefix##_##rows##_2, prefix##_##rows##_3                              \
    }
static add_block *const add_blocks[2][ROWS_MAX][PIECES_MAX] = {
    { ADD_ROWS(add, 1), ADD_ROWS(add, 2), ADD_ROWS(add, 3) },
    { ADD_ROWS(add_shuffled, 1), ADD_ROWS(add_shuffled, 2), ADD_ROWS(add_shuffled, 3) },
};

/* All kernel rows of a list, block by block. */
static void add_rows(const struct stk_bf16_conv *size, const struct list *list,
                     const struct block *all, bool shuffled)
{
    if (list->count == 0)
        return;
    for (uint64_t first = 0; first < size->run; first += PIECES_MAX * STK_BF16_LANES) {
        const uint64_t left = size->run - first;
        const uint64_t pieces = left < (uint64_t)PIECES_MAX * STK_BF16_LANES
                                    ? (left + STK_BF16_LANES - 1) / STK_BF16_LANES
                                    : PIECES_MAX;
        const uint64_t in_last = left - (pieces - 1) * STK_BF16_LANES;
        for (uint32_t r = 0; r < size->kernel_h; r += ROWS_MAX) {
            const uint32_t rows = size->kernel_h - r < ROWS_MAX ? size->kernel_h - r : ROWS_MAX;
            const struct block block = {
                .from = all->from + r * all->from_row + first,
                .from_row = all->from_row,
                .to = all->to + r * all->to_row + first,
                .to_row = all->to_row,
                .last = in_last >= STK_BF16_LANES ? 0xFFFFFFFF : (1U << in_last) - 1,
            };
            add_blocks[shuffled][rows - 1][pieces - 1](list, &block);
        }
    }
}

/* ---- data ---- */

uint64_t stk_bf16_conv_shuffled_bytes(const struct stk_bf16_conv *size)
{
    return size->filters * size->kernel_h * padded_run(size) * sizeof(uint16_t);
}

/* Where element i of 32 goes, so that interleaving two such rows gives columns 0..15 and 16..31. */
static uint64_t shuffled_place(uint64_t i)
{
    const uint64_t half = i / 16;
    return i % 16 / 4 * 8 + half * 4 + i % 4;
}

void stk_bf16_conv_shuffle(const struct stk_bf16_conv *size, const uint16_t *weights,
                           uint16_t *shuffled, uint32_t thread, uint32_t threads)
{
    const uint64_t rows = (uint64_t)size->filters * size->kernel_h;
    const struct stk_share share = stk_share_of(rows, thread, threads);
    for (uint64_t row = share.begin; row < share.end; row++) {
        uint16_t *to = shuffled + row * padded_run(size);
        memset(to, 0, padded_run(size) * sizeof(*to));
        for (uint64_t i = 0; i < size->run; i++)
            to[i / STK_BF16_LANES * STK_BF16_LANES + shuffled_place(i % STK_BF16_LANES)] =
                weights[row * size->run + i];
    }
}

static uint64_t sums_bytes(const struct stk_bf16_conv *size)
{
    return round_to_line(size->h * row_elements(size) * sizeof(float));
}

uint64_t stk_bf16_conv_data_scratch_bytes(const struct stk_bf16_conv *size)
{
    return sums_bytes(size) + lists_bytes(pixels_of(size), size->filters);
}

const float *stk_bf16_conv_backward_data(const struct stk_bf16_conv *size, const uint16_t *dy,
                                         const uint16_t *shuffled, void *scratch)
{
    float *dx = scratch;
    const uint64_t filter_elements = size->kernel_h * padded_run(size);
    const struct lists lists =
        lists_in((uint8_t *)scratch + sums_bytes(size), pixels_of(size), size->filters);
    list_filters(size, dy, (uint32_t)filter_elements, &lists);
    memset(dx, 0, size->h * row_elements(size) * sizeof(float));
    for (uint32_t pixel = 0; pixel < pixels_of(size); pixel++) {
        const uint64_t first = pixel * list_room(size->filters);
        const struct list list = { lists.at + first, lists.values + first, lists.counts[pixel] };
        const struct block block = { .from = shuffled,
                                     .from_row = padded_run(size),
                                     .to = dx + reads_at(size, pixel),
                                     .to_row = row_elements(size) };
        add_rows(size, &list, &block, true);
    }
    return dx;
}

/* ---- weights ---- */

uint64_t stk_bf16_conv_weights_scratch_bytes(const struct stk_bf16_conv *size)
{
    return stk_bf16_is_stem(size) ? stk_bf16_stem_scratch_bytes(size)
                                  : lists_bytes(size->filters, pixels_of(size));
}

STK_BF16 static float sum_values(const struct list *list)
{
    __m512 sum = _mm512_setzero_ps();
    for (uint32_t i = 0; i < list->count; i += STK_BF16_FLOATS) {
        const __mmask16 lanes = stk_bf16_first_floats(list->count - i);
        sum = _mm512_add_ps(sum, stk_bf16_widen(_mm256_maskz_loadu_epi16(lanes, list->values + i)));
    }
    return _mm512_reduce_add_ps(sum);
}

static void weights_by_list(const struct stk_bf16_conv *size, const uint16_t *x, const uint16_t *dy,
                            float *weight_grad, float *bias_grad, void *scratch)
{
    const struct lists lists = lists_in(scratch, size->filters, pixels_of(size));
    list_pixels(size, dy, &lists);
    for (uint32_t filter = 0; filter < size->filters; filter++) {
        const uint64_t first = filter * list_room(pixels_of(size));
        const struct list list = { lists.at + first, lists.values + first, lists.counts[filter] };
        const struct block block = {
            .from = x,
            .from_row = row_elements(size),
            .to = weight_grad + (uint64_t)filter * size->kernel_h * size->run,
            .to_row = size->run,
        };
        add_rows(size, &list, &block, false);
        if (bias_grad != NULL)
            bias_grad[filter] += sum_values(&list);
    }
}

void stk_bf16_conv_backward_weights(const struct stk_bf16_conv *size, const uint16_t *x,
                                    const uint16_t *dy, float *weight_grad, float *bias_grad,
                                    void *scratch)
{
    if (stk_bf16_is_stem(size))
        stk_bf16_stem_weights(size, x, dy, weight_grad, bias_grad, scratch);
    else
        weights_by_list(size, x, dy, weight_grad, bias_grad, scratch);
}
#endif
