/* transform.cu - the transforms on a GPU (launch_body.h): a block makes some pixels of one sample.
 *
 *   grid.x  pixels (or coordinates) of a sample     grid.y  samples, in steps if there are more
 *
 * The first thread of a block draws the sample's frame for all of them. -fmad=false: only fmaf() fuses a
 * multiplication and an addition.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/transform/launch.h"

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

#include "kernels/transform/launch_body.h"
#include "kernels/transform/launch_mix_body.h"

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

#define DEFINE_CROP(name, type, planes)                                                            \
    extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)                               \
        name(const __grid_constant__ struct stk_crop_launch launch)                                \
    {                                                                                              \
        const struct stk_framing &framing = launch.batch.framing;                                  \
        FOR_EACH(launch.batch, framing.out_height *framing.out_width,                              \
                 stk_crop_thread(&launch, &frame, k, i, type, planes))                             \
    }
DEFINE_CROP(stk_crop_f32_nhwc, STK_STORE_F32, 0)
DEFINE_CROP(stk_crop_f32_nchw, STK_STORE_F32, 1)
DEFINE_CROP(stk_crop_f16_nhwc, STK_STORE_F16, 0)
DEFINE_CROP(stk_crop_f16_nchw, STK_STORE_F16, 1)
DEFINE_CROP(stk_crop_bf16_nhwc, STK_STORE_BF16, 0)
DEFINE_CROP(stk_crop_bf16_nchw, STK_STORE_BF16, 1)
DEFINE_CROP(stk_crop_u8_nhwc, STK_STORE_U8, 0)
DEFINE_CROP(stk_crop_u8_nchw, STK_STORE_U8, 1)

/* ---- rotation, colours, blur ---------------------------------------------------- */

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
            launch.means[k] = stk_colour_mean(sums[0], stk_retouch_pixels(&launch));
    }
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_colour(const __grid_constant__ struct stk_retouch_launch launch)
{
    FOR_EACH_PIXEL(launch.batch, stk_colour_thread(&launch, k, i))
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
