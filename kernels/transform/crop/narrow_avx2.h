/* narrow_avx2.h - rows of floats in lines of 16 to 64 pixels, such as those of CIFAR: blocks of
 * eight pixels, as they are or flipped, channels last or in planes.
 *
 *   line of the output   block, partly fill │ block │ ... │ block │ block, partly fill
 *
 *   24 bytes of the image    r g b r g b r g b r g b r g b r g b r g b r g b     3 channels
 *                              └── window ────────────┘                            16 bytes
 *                                     │ order: any 8 of them, as 32-bit numbers
 *                                     ▼
 *                              [ 8 elements ] ─▶ fma ─▶ stored                     3 times
 *
 * Tiles (crop_body.h) cost such lines too many mispredicted branches, since the place of fill
 * differs from row to row: 0.38 to 0.47 us for a 32x32 image with padding against 0.25 here (Zen
 * 4). A line has the same blocks for every image. The first and last may overhang the image by up
 * to eight pixels: the plan has shuffles for each overhang (shuffle_tables.h). Lines outside the
 * image are read from a line of fill.
 *
 * Widening bytes takes a shuffle anyway, and vpshufb reads them in any order: so flipping pixels,
 * splitting them into planes and filling those outside the image is free. A block writes its own
 * eight pixels and nothing beside them. With n channels it makes n vectors of eight elements; their
 * sources and targets stay in registers for a whole image. A store's address is always in a
 * register: if it had to be loaded, later loads would wait for it.
 */
#ifndef STK_KERNELS_TRANSFORM_NARROW_AVX2_H
#define STK_KERNELS_TRANSFORM_NARROW_AVX2_H

#include <immintrin.h>

#include "kernels/transform/crop/crop_view.h"

enum {
    BLOCK_PIXELS = STK_BLOCK_PIXELS,
    VECTORS_MAX = STOKER_TRANSFORM_CHANNELS_MAX,
    NARROW_BLOCKS = STK_FILL_BYTES / STOKER_TRANSFORM_CHANNELS_MAX / BLOCK_PIXELS
};

/* One vector of a block. */
struct vector {
    __m256i order; /* bytes of the windows, for vpshufb */
    __m256 factor, bias;
    /* Windows of the first and last four elements: bytes from the block's first. */
    int32_t low, high;
    size_t to; /* bytes from the block's first in the output */
};

/* How to make a block. channels and planes are compile-time constants. */
struct block {
    uint32_t channels;
    bool planes;
    struct vector vectors[VECTORS_MAX];
};

/* ---- stores of eight floats, in each type ----------------------------------------- */

static inline void eight_to_f32(unsigned char *at, __m256 v)
{
    _mm256_storeu_ps((float *)(void *)at, v);
}

static inline void eight_to_f16(unsigned char *at, __m256 v)
{
    _mm_storeu_si128((__m128i_u *)at, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* As bfloat16_of_float() without NaN: adds half a step, less one if even. */
static inline void eight_to_bf16(unsigned char *at, __m256 v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half_step = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i upper = _mm256_srli_epi32(_mm256_add_epi32(bits, half_step), 16);
    const __m256i packed = _mm256_packus_epi32(upper, upper);
    _mm_storeu_si128((__m128i_u *)at, _mm256_castsi256_si128(_mm256_permute4x64_epi64(
                                          packed, _MM_SHUFFLE(3, 1, 2, 0))));
}

/* ---- making and using a block ----------------------------------------------------- */

/* plane_bytes: distance between the planes of two channels in the output. */
static ALWAYS_INLINE void block_init(struct block *block, const struct stk_transform_plan *plan,
                                     const struct stk_shuffle *shuffles, uint32_t channels,
                                     bool planes, size_t element_bytes, size_t plane_bytes)
{
    block->channels = channels;
    block->planes = planes;
#pragma GCC unroll 4
    for (uint32_t number = 0; number < channels; number++) {
        struct vector *vector = &block->vectors[number];
        vector->order = _mm256_loadu_si256((const __m256i_u *)shuffles[number].order);
        vector->factor = planes ? _mm256_set1_ps(plan->factor[number])
                                : _mm256_loadu_ps(plan->factor + number * BLOCK_PIXELS);
        vector->bias = _mm256_loadu_ps(shuffles[number].bias);
        vector->low = shuffles[number].low;
        vector->high = shuffles[number].high;
        vector->to = number * (planes ? plane_bytes : BLOCK_PIXELS * element_bytes);
    }
}

static ALWAYS_INLINE __m256i block_windows(const struct block *block, const unsigned char *in,
                                           int32_t low_at, int32_t high_at)
{
    if (block->channels == 1)
        return _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i_u *)(in + low_at)));
    const __m128i low = _mm_loadu_si128((const __m128i_u *)(in + low_at));
    if (!block->planes)
        return _mm256_broadcastsi128_si256(low);
    const __m128i high = _mm_loadu_si128((const __m128i_u *)(in + high_at));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Converts the eight pixels at in, flipped or not. */
static ALWAYS_INLINE void block_put(const struct block *block, const unsigned char *in,
                                    unsigned char *out, store_eight_fn *store)
{
    __m256i windows = _mm256_setzero_si256(); /* planes: shared by all vectors */
#pragma GCC unroll 4
    for (uint32_t number = 0; number < block->channels; number++) {
        const struct vector *vector = &block->vectors[number];
        if (!block->planes || number == 0)
            windows = block_windows(block, in, vector->low, vector->high);
        const __m256i numbers = _mm256_shuffle_epi8(windows, vector->order);
        store(out + vector->to,
              _mm256_fmadd_ps(_mm256_cvtepi32_ps(numbers), vector->factor, vector->bias));
    }
}

/* ---- lines -------------------------------------------------------------------------- */

/* Bytes between two pixels of a channel in the output. */
static ALWAYS_INLINE size_t pixel_bytes_of(const struct target *target)
{
    return target->pair.to_bytes * (target->planes ? 1 : target->channels);
}

/* Makes a block that overhangs the image by `overhang` pixels on a side. */
static ALWAYS_INLINE struct block block_for(const struct stk_transform_plan *plan,
                                            const struct stk_crop *crop,
                                            const struct target *target, enum stk_side side,
                                            size_t overhang)
{
    const size_t bytes = target->pair.to_bytes;
    struct block block;
    block_init(&block, plan, plan->shuffles[crop->flip][side][overhang], target->channels,
               target->planes, bytes, target->height * target->width * bytes);
    return block;
}

/* Returns how many bytes of a later image are prefetched with each line of this one. */
static ALWAYS_INLINE size_t share_of(struct fetching fetching, size_t lines)
{
    return ((uint32_t)fetching.left + (uint32_t)lines - 1) / (uint32_t)lines;
}

/* Returns one, or other if flipped, without a branch: flips are random, so it would be
 * mispredicted. */
static ALWAYS_INLINE int32_t turned(int32_t flip, int32_t one, int32_t other)
{
    return one + flip * (other - one);
}

/* Fills `pixels` pixels of the output from pixel `place` on. The plan holds the bytes, so one
 * function serves all types and layouts. */
static NOINLINE void fill_pixels(const struct stk_transform_plan *plan, unsigned char *out,
                                 size_t whole, size_t place, size_t pixels)
{
    const size_t period = plan->filled_bytes;
    for (size_t plane = 0; plane < plan->filled_planes; plane++)
        fill_run(plan->filled[plane], period, out + (plane * whole + place) * period,
                 pixels * period);
}

/* Fills the cutout. */
static ALWAYS_INLINE void cut_pixels(const struct stk_transform_plan *plan,
                                     const struct stk_crop *crop, const struct target *target)
{
    if (!is_cut(crop))
        return;
    for (size_t y = (size_t)crop->cut_top; y < (size_t)crop->cut_bottom; y++)
        fill_pixels(plan, target->out, target->height * target->width,
                    y * target->width + (size_t)crop->cut_left,
                    (size_t)(crop->cut_right - crop->cut_left));
}

/* The blocks of a line: its first, its last and those between. The last of these may overlap the
 * last. */
struct narrow {
    int32_t first_beside, last_beside; /* overhang of these two, in pixels; < 0: none */
    int32_t lowest;                    /* first column of the image that is read */
    ptrdiff_t first, between, last;    /* where they are read, in bytes from there */
    size_t count;                      /* number of those between */
};

static ALWAYS_INLINE int32_t within(int32_t at, int32_t last)
{
    return at < 0 ? 0 : at > last ? last : at;
}

static ALWAYS_INLINE struct narrow narrow_of(const struct stk_crop *crop,
                                             const struct target *target)
{
    const int32_t width = (int32_t)target->width, room = crop->width - BLOCK_PIXELS;
    const int32_t left = crop->x, right = left + width - BLOCK_PIXELS; /* the outermost blocks */
    const int32_t channels = (int32_t)target->channels, lowest = within(left, room);
    const int32_t high = (within(right, room) - lowest) * channels, flip = crop->flip;
    const int32_t next = turned(flip, left + BLOCK_PIXELS, right - BLOCK_PIXELS);
    return (struct narrow){ .first_beside = turned(flip, -left, right - room),
                            .last_beside = turned(flip, right - room, -left),
                            .lowest = lowest,
                            .first = turned(flip, 0, high),
                            .between = (within(next, room) - lowest) * channels,
                            .last = turned(flip, high, 0),
                            .count = (target->width - 1) / BLOCK_PIXELS - 1 };
}

/* Returns whether the lines are narrow and only the outermost blocks overhang the image. */
static ALWAYS_INLINE bool is_narrow(const struct stk_crop *crop, const struct target *target,
                                    const struct narrow *narrow)
{
    const int32_t behind = (int32_t)((target->width - 1) % BLOCK_PIXELS) + 1;
    return target->width >= 2 * BLOCK_PIXELS && target->width <= NARROW_BLOCKS * BLOCK_PIXELS &&
           crop->width >= BLOCK_PIXELS && narrow->first_beside <= BLOCK_PIXELS &&
           narrow->last_beside <= behind;
}

static ALWAYS_INLINE size_t overhang_of(int32_t beside)
{
    return (size_t)within(beside, BLOCK_PIXELS);
}

/* Writes all lines, with `count` blocks between first and last: a compile-time constant if that
 * pays. */
static ALWAYS_INLINE void put_lines(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct target *target,
                                    const struct narrow *narrow, size_t count)
{
    const enum stk_side begin = (enum stk_side)crop->flip, end = (enum stk_side) !crop->flip;
    const struct block first =
        block_for(plan, crop, target, begin, overhang_of(narrow->first_beside));
    const struct block last = block_for(plan, crop, target, end, overhang_of(narrow->last_beside));
    const struct block between = block_for(plan, crop, target, STK_SIDE_LOW, 0);
    const size_t pixel_bytes = pixel_bytes_of(target), line_bytes = target->width * pixel_bytes;
    const size_t step = BLOCK_PIXELS * pixel_bytes;
    const int32_t block_bytes = BLOCK_PIXELS * (int32_t)target->channels;
    const ptrdiff_t in_step = turned(crop->flip, block_bytes, -block_bytes);
    /* Copies, because for the compiler out may alias the crop. */
    const ptrdiff_t stride = (ptrdiff_t)crop->stride_bytes;
    const uint32_t height = (uint32_t)crop->height, top = (uint32_t)crop->y;
    const uint32_t bottom = top + (uint32_t)target->height;
    const struct narrow at = *narrow;
    const unsigned char *const image = crop->pixels + (size_t)at.lowest * target->channels;
    unsigned char *row = target->out;
    const struct fetching fetching = fetching_of(crop);
    const size_t share = share_of(fetching, target->height);
    const unsigned char *later = share > 0 ? fetching.next : plan->fill; /* no NULL + 0 */
    /* Summed up: for a product the compiler would branch to skip lines of fill. */
    ptrdiff_t offset = (ptrdiff_t)crop->y * stride;
    for (uint32_t y = top; y != bottom; y++, row += line_bytes, offset += stride) {
        const unsigned char *const from = image + offset;
        const unsigned char *const line = y < height ? from : plan->fill; /* huge if negative */
        __builtin_prefetch(later, 0, 3);
        for (size_t i = LINE_BYTES; i < share; i += LINE_BYTES)
            __builtin_prefetch(later + i, 0, 3);
        later += share;
        block_put(&first, line + at.first, row, target->store);
        const unsigned char *in = line + at.between;
        unsigned char *out = row + step;
#pragma GCC unroll 2
        for (size_t i = 0; i < count; i++, in += in_step, out += step)
            block_put(&between, in, out, target->store);
        block_put(&last, line + at.last, row + line_bytes - step, target->store);
    }
}

/* Rows of 25 to 32 pixels, such as those of CIFAR, have two blocks between. */
static ALWAYS_INLINE void put_narrow(const struct stk_transform_plan *plan,
                                     const struct stk_crop *crop, const struct target *target,
                                     const struct narrow *narrow)
{
    /* Float32 of one or three channels; more code does not pay for the rest. */
    if (narrow->count == 2 && target->channels % 2 == 1 && target->pair.to_bytes == sizeof(float))
        put_lines(plan, crop, target, narrow, 2);
    else
        put_lines(plan, crop, target, narrow, narrow->count);
    cut_pixels(plan, crop, target);
}

#endif
