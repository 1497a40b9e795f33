/* transform.cu - the transforms on a GPU (launch_body.h): a block makes some pixels of one sample.
 *
 *   grid.x  pixels (or coordinates) of a sample
 *   grid.y  samples, in steps if there are more; the crops differ (launch_crop_body.h)
 *
 * The first thread of a block draws the sample's frame for all of them. -fmad=false: only fmaf()
 * fuses a multiplication and an addition.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/transform/gpu/launch.h"

static __device__ inline void stk_store_f16(uint16_t *at, float value)
{
    *at = __half_as_ushort(__float2half_rn(value));
}

static __device__ inline void stk_store_bf16(uint16_t *at, float value)
{
    *at = __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

static __device__ inline float stk_load_f16(const uint16_t *at)
{
    return __half2float(__ushort_as_half(*at));
}

static __device__ inline float stk_load_bf16(const uint16_t *at)
{
    return __uint_as_float((uint32_t)*at << 16);
}

static __device__ inline uint32_t stk_float_bits(float value)
{
    return __float_as_uint(value);
}

/* Stores the first `bytes` of the words: 1, 2, 4, 8 or 16, a constant; `at` is aligned to as
 * many. */
static __device__ __forceinline__ void stk_store_chunk(uint8_t *at, const uint32_t *words,
                                                       const uint32_t bytes)
{
    if (bytes == 16)
        *(uint4 *)at = make_uint4(words[0], words[1], words[2], words[3]);
    else if (bytes == 8)
        *(uint2 *)at = make_uint2(words[0], words[1]);
    else if (bytes == 4)
        *(uint32_t *)at = words[0];
    else if (bytes == 2)
        *(uint16_t *)at = (uint16_t)words[0];
    else
        *at = (uint8_t)words[0];
}

#include "kernels/transform/gpu/launch_blend_body.h"
#include "kernels/transform/gpu/launch_crop_body.h"

/* Runs BODY for each sample k of the batch and each i below `elements`, with the frame of sample k.
 * A parameter of the macro must not be called `count`: it would replace the member of that name. */
#define FOR_EACH(batch, elements, BODY)                                                            \
    __shared__ struct stk_frame frame;                                                             \
    const uint32_t i = blockIdx.x * STK_LAUNCH_THREADS + threadIdx.x;                              \
    for (uint32_t k = blockIdx.y; k < (batch).count; k += gridDim.y) {                             \
        __syncthreads(); /* all threads are done with the previous sample's frame */               \
        if (threadIdx.x == 0)                                                                      \
            stk_launch_draw(&(batch), k, &frame);                                                  \
        __syncthreads();                                                                           \
        if (i < (elements))                                                                        \
            BODY;                                                                                  \
    }

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_rectangles(const __grid_constant__ struct stk_rectangles_launch launch)
{
    const uint32_t k = blockIdx.x * STK_RECTANGLES_SAMPLES + threadIdx.x;
    if (threadIdx.x >= STK_RECTANGLES_SAMPLES)
        return;
    if (k < launch.batch.count)
        stk_rectangles_thread(&launch.batch, k);
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_taps(const __grid_constant__ struct stk_taps_launch launch)
{
    const struct stk_framing &framing = launch.batch.framing;
    FOR_EACH(launch.batch, framing.out_height + framing.out_width,
             stk_taps_thread(&launch.batch, &frame, k, i))
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_resize(const __grid_constant__ struct stk_resize_launch launch)
{
    const struct stk_framing &framing = launch.batch.framing;
    FOR_EACH(launch.batch, framing.out_height * framing.out_width,
             stk_resize_thread(&launch.batch, &frame, k, i))
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_keep(const __grid_constant__ struct stk_keep_launch launch)
{
    const uint32_t i = blockIdx.x * STK_LAUNCH_THREADS + threadIdx.x;
    for (uint32_t k = blockIdx.y; k < launch.batch.count; k += gridDim.y)
        if (i < launch.batch.height * launch.batch.width)
            stk_keep_thread(&launch, k, i);
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_rows(const __grid_constant__ struct stk_rows_launch launch)
{
    for (uint32_t k = blockIdx.y; k < launch.batch.count; k += gridDim.y)
        stk_rows_thread(&launch, k, blockIdx.x, threadIdx.x);
}

/* ---- crops: a thread makes a pack (launch_crop_body.h) ---------------------------
 *
 *   grid.x  groups of samples     grid.y  packs of a sample, in steps if there are more
 *
 * A block makes some packs of one sample, or of each of 2, 4 or 8 samples that have few. The first
 * thread of each sample draws its view, outside of any loop: nvcc would have every thread compute
 * what is constant in it.
 */

enum { CROP_CHANNELS_SWAPPED = 3, THREADS_SHIFT = 8 };
static_assert(STK_LAUNCH_THREADS == 1 << THREADS_SHIFT,
              "a block's threads are shared out among samples");

struct alignas(16) stk_shared_view : stk_crop_view {
};

template <uint32_t count> struct alignas(16) stk_shared_words {
    uint32_t word[count];
};

static __device__ __forceinline__ void stk_load_chunk(const uint32_t *at, uint32_t *words,
                                                      const uint32_t bytes)
{
    if (bytes == 16) {
        const uint4 chunk = *(const uint4 *)at;
        words[0] = chunk.x, words[1] = chunk.y, words[2] = chunk.z, words[3] = chunk.w;
    } else if (bytes == 8) {
        const uint2 chunk = *(const uint2 *)at;
        words[0] = chunk.x, words[1] = chunk.y;
    } else {
        words[0] = *at;
    }
}

/* Makes the pack that begins at `pixel`. A pack that is one chunk, or one a plane, is stored. The
 * three chunks of a pack of three channels go to `swapped`, from where the threads of a warp store
 * adjacent ones: 12 of them one after the other fill whole sectors of memory, where their own ones
 * would lie three chunks apart. */
template <int type, int planes, uint32_t channels, uint32_t pack>
static __device__ __forceinline__ void stk_crop_one(const struct stk_crop_launch &launch,
                                                    const struct stk_crop_view &view, uint32_t k,
                                                    uint32_t i, uint32_t *swapped)
{
    if constexpr (pack == 0) {
        stk_crop_pixel(&launch, &view, k, i, type, planes);
        return;
    }
    const uint32_t pixel = i * pack, y = stk_crop_line(&launch, pixel);
    const uint32_t x = pixel - y * launch.batch.framing.out_width;
    uint32_t words[STK_CROP_WORDS_MAX];
    stk_crop_make(&launch, &view, y, x, type, planes, channels, pack, words);
    if constexpr (planes || channels != CROP_CHANNELS_SWAPPED) {
        stk_crop_store_pack(&launch, k, pixel, type, planes, channels, pack, words);
        return;
    }
    const uint32_t bytes = stk_crop_chunk_bytes(type, planes, channels, pack);
    uint32_t *own = swapped + threadIdx.x * channels * bytes / 4;
    STK_UNROLL
    for (uint32_t chunk = 0; chunk < channels; chunk++)
        stk_store_chunk((uint8_t *)(own + chunk * bytes / 4), words + chunk * bytes / 4, bytes);
}

/* Stores what the warp has in `swapped`. i: this thread's pack; chunks: of the sample. */
template <int type, uint32_t pack>
static __device__ __forceinline__ void stk_crop_store_swapped(const struct stk_crop_launch &launch,
                                                              uint32_t k, uint32_t i,
                                                              uint32_t chunks,
                                                              const uint32_t *swapped)
{
    const uint32_t bytes = stk_crop_chunk_bytes(type, 0, CROP_CHANNELS_SWAPPED, pack);
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t *in = swapped + (threadIdx.x - lane) * CROP_CHANNELS_SWAPPED * bytes / 4;
    uint8_t *out = (uint8_t *)launch.out + stk_crop_row(&launch, k) * chunks * bytes;
    STK_UNROLL
    for (uint32_t turn = 0; turn < CROP_CHANNELS_SWAPPED; turn++) {
        const uint32_t own = turn * 32 + lane;
        const uint32_t chunk = (i - lane) * CROP_CHANNELS_SWAPPED + own;
        uint32_t words[4];
        if (chunk >= chunks)
            break;
        stk_load_chunk(in + own * bytes / 4, words, bytes);
        stk_store_chunk(out + (uint64_t)chunk * bytes, words, bytes);
    }
}

/* A thread's part in its block: pack first + thread, first + thread + step, ... of sample k. */
struct stk_crop_part {
    uint32_t packs, thread, threads, group, k;
};

template <int type, int planes, uint32_t channels, uint32_t pack>
static __device__ __forceinline__ void stk_crop_packs_of(const struct stk_crop_launch &launch,
                                                         const struct stk_crop_part part,
                                                         const struct stk_shared_view *views,
                                                         uint32_t *swapped)
{
    const uint32_t step = gridDim.y * part.threads, last = part.packs - 1;
    for (uint32_t first = blockIdx.y * part.threads; first <= last; first += step) {
        const uint32_t i = first + part.thread;
        if (part.k < launch.batch.count)
            if (i < part.packs)
                stk_crop_one<type, planes, channels, pack>(launch, views[part.group], part.k, i,
                                                           swapped);
        if constexpr (!planes && pack > 0 && channels == CROP_CHANNELS_SWAPPED) {
            __syncthreads();
            if (part.k < launch.batch.count)
                stk_crop_store_swapped<type, pack>(launch, part.k, i, part.packs * channels,
                                                   swapped);
            __syncthreads(); /* all chunks are read */
        }
    }
}

/* One instance for each pack that stk_crop_pack() returns. */
template <int type, int planes>
static __device__ __forceinline__ void stk_crop(const struct stk_crop_launch &launch,
                                                struct stk_shared_view *views, uint32_t *swapped)
{
    constexpr uint32_t whole = type == STK_STORE_F32 ? 4 : type == STK_STORE_U8 ? 16 : 8;
    constexpr uint32_t two = planes ? 4 : whole / 2, four = planes ? 4 : whole / 4;
    const uint32_t channels = launch.batch.channels, pack = stk_crop_pack(&launch, type, planes);
    struct stk_crop_part part;
    part.packs = stk_crop_packs(&launch, pack);
    const uint32_t shift = stk_crop_samples_shift(part.packs);
    part.threads = STK_LAUNCH_THREADS >> shift;
    part.thread = threadIdx.x & (part.threads - 1);
    part.group = threadIdx.x >> (THREADS_SHIFT - shift);
    part.k = (blockIdx.x << shift) + part.group;
    if (part.thread == 0) {
        if (part.k < launch.batch.count)
            stk_crop_draw(&launch.batch, part.k, &views[part.group]);
    }
    __syncthreads();
    if (pack == 0)
        stk_crop_packs_of<type, planes, 1, 0>(launch, part, views, swapped);
    else if (channels == 3)
        stk_crop_packs_of<type, planes, 3, 4>(launch, part, views, swapped);
    else if (channels == 1 && pack == whole)
        stk_crop_packs_of<type, planes, 1, whole>(launch, part, views, swapped);
    else if (channels == 1)
        stk_crop_packs_of<type, planes, 1, 4>(launch, part, views, swapped);
    else if (channels == 2 && pack == two)
        stk_crop_packs_of<type, planes, 2, two>(launch, part, views, swapped);
    else if (channels == 2)
        stk_crop_packs_of<type, planes, 2, 4>(launch, part, views, swapped);
    else
        stk_crop_packs_of<type, planes, 4, four>(launch, part, views, swapped);
}

#define DEFINE_CROP(name, type, planes)                                                            \
    extern "C" __global__ void __launch_bounds__(STK_LAUNCH_UNSPILLED(6))                          \
        name(const __grid_constant__ struct stk_crop_launch launch)                                \
    {                                                                                              \
        constexpr uint32_t element_words = (planes)                  ? 0                           \
                                           : (type) == STK_STORE_F32 ? 4                           \
                                           : (type) == STK_STORE_U8  ? 1                           \
                                                                     : 2;                           \
        __shared__ struct stk_shared_view views[1 << STK_CROP_SAMPLES_SHIFT];                      \
        __shared__ struct stk_shared_words<                                                        \
            STK_LAUNCH_THREADS * CROP_CHANNELS_SWAPPED * element_words + 1>                        \
            swapped;                                                                               \
        stk_crop<type, planes>(launch, views, swapped.word);                                       \
    }
DEFINE_CROP(stk_crop_f32_nhwc, STK_STORE_F32, 0)
DEFINE_CROP(stk_crop_f32_nchw, STK_STORE_F32, 1)
DEFINE_CROP(stk_crop_f16_nhwc, STK_STORE_F16, 0)
DEFINE_CROP(stk_crop_f16_nchw, STK_STORE_F16, 1)
DEFINE_CROP(stk_crop_bf16_nhwc, STK_STORE_BF16, 0)
DEFINE_CROP(stk_crop_bf16_nchw, STK_STORE_BF16, 1)
DEFINE_CROP(stk_crop_u8_nhwc, STK_STORE_U8, 0)
DEFINE_CROP(stk_crop_u8_nchw, STK_STORE_U8, 1)

/* ---- rotation, colors, blur ---------------------------------------------------- */

/* Runs BODY for each sample k of the batch and each pixel i of its output. */
#define FOR_EACH_PIXEL(batch, BODY)                                                                \
    const uint32_t i = blockIdx.x * STK_LAUNCH_THREADS + threadIdx.x;                              \
    for (uint32_t k = blockIdx.y; k < (batch).count; k += gridDim.y)                               \
        if (i < (batch).framing.out_height * (batch).framing.out_width)                            \
            BODY;

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_retouch(const __grid_constant__ struct stk_retouch_launch launch)
{
    const uint32_t k = blockIdx.x * STK_LAUNCH_THREADS + threadIdx.x;
    if (k < launch.batch.count)
        stk_retouch_thread(&launch, k);
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_rotate(const __grid_constant__ struct stk_retouch_launch launch)
{
    FOR_EACH_PIXEL(launch.batch, stk_rotate_thread(&launch, k, i))
}

/* Integers: the order of the additions does not matter. */
extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_gray(const __grid_constant__ struct stk_retouch_launch launch)
{
    __shared__ uint64_t sums[STK_LAUNCH_THREADS];
    for (uint32_t k = blockIdx.y; k < launch.batch.count; k += gridDim.y) {
        __syncthreads(); /* the previous sample's sum is written */
        sums[threadIdx.x] = stk_gray_thread(&launch, k, threadIdx.x);
        for (uint32_t half = STK_LAUNCH_THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        if (threadIdx.x == 0)
            launch.means[k] = stk_color_mean(sums[0], stk_retouch_pixels(&launch));
    }
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_color(const __grid_constant__ struct stk_retouch_launch launch)
{
    FOR_EACH_PIXEL(launch.batch, stk_color_thread(&launch, k, i))
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_blur_along(const __grid_constant__ struct stk_retouch_launch launch)
{
    FOR_EACH_PIXEL(launch.batch, stk_blur_along_thread(&launch, k, i))
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_blur_across(const __grid_constant__ struct stk_retouch_launch launch){
        FOR_EACH_PIXEL(launch.batch, stk_blur_across_thread(&launch, k, i))
    }

/* ---- mixup, cutmix: a thread makes an element of all rows ------------------------ */

#define DEFINE_MIXUP(name, type)                                                                   \
    extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)                               \
        name(const __grid_constant__ struct stk_mixup_launch launch)                               \
    {                                                                                              \
        const uint64_t i = (uint64_t)blockIdx.x * STK_LAUNCH_THREADS + threadIdx.x;                \
        if (i < launch.elements)                                                                   \
            stk_mixup_thread(&launch, i, type);                                                    \
    }
DEFINE_MIXUP(stk_mixup_u8, STK_MIX_U8) DEFINE_MIXUP(stk_mixup_f16, STK_MIX_F16)
    DEFINE_MIXUP(stk_mixup_bf16, STK_MIX_BF16) DEFINE_MIXUP(stk_mixup_f32, STK_MIX_F32)

        extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
            stk_cutmix(const __grid_constant__ struct stk_cutmix_launch launch)
{
    const uint64_t i = (uint64_t)blockIdx.x * STK_LAUNCH_THREADS + threadIdx.x;
    if (i < stk_cutmix_units(&launch))
        stk_cutmix_thread(&launch, i);
}
