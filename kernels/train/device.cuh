/* device.cuh - shared by the kernels: storage types, sums of a block, and detection of the last
 * block. */
#ifndef STK_KERNELS_TRAIN_DEVICE_CUH
#define STK_KERNELS_TRAIN_DEVICE_CUH

#include "kernels/train/elements.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* ---- storage: T in memory, float in registers ------------------------------------------------ */

static __device__ __forceinline__ float load(const float *p, uint64_t i)
{
    return p[i];
}
static __device__ __forceinline__ float load(const __half *p, uint64_t i)
{
    return __half2float(p[i]);
}
static __device__ __forceinline__ float load(const __nv_bfloat16 *p, uint64_t i)
{
    return __bfloat162float(p[i]);
}
static __device__ __forceinline__ void store(float *p, uint64_t i, float v)
{
    p[i] = v;
}
static __device__ __forceinline__ void store(__half *p, uint64_t i, float v)
{
    p[i] = __float2half_rn(v);
}
static __device__ __forceinline__ void store(__nv_bfloat16 *p, uint64_t i, float v)
{
    p[i] = __float2bfloat16_rn(v);
}

/* ---- eight adjacent elements, aligned to 16 bytes -------------------------------------------- */

static __device__ __forceinline__ void load_pack(const float *p, float *v)
{
    const float4 low = ((const float4 *)p)[0];
    const float4 high = ((const float4 *)p)[1];
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}
static __device__ __forceinline__ void store_pack(float *p, const float *v)
{
    ((float4 *)p)[0] = make_float4(v[0], v[1], v[2], v[3]);
    ((float4 *)p)[1] = make_float4(v[4], v[5], v[6], v[7]);
}
union pack16 {
    uint4 whole;
    uint16_t part[STK_TRAIN_PACK];
};
static __device__ __forceinline__ void load_pack(const __half *p, float *v)
{
    pack16 pack;
    pack.whole = *(const uint4 *)p;
#pragma unroll
    for (int i = 0; i < STK_TRAIN_PACK; i++)
        v[i] = __half2float(__ushort_as_half(pack.part[i]));
}
static __device__ __forceinline__ void store_pack(__half *p, const float *v)
{
    pack16 pack;
#pragma unroll
    for (int i = 0; i < STK_TRAIN_PACK; i++)
        pack.part[i] = __half_as_ushort(__float2half_rn(v[i]));
    *(uint4 *)p = pack.whole;
}
static __device__ __forceinline__ void load_pack(const __nv_bfloat16 *p, float *v)
{
    pack16 pack;
    pack.whole = *(const uint4 *)p;
#pragma unroll
    for (int i = 0; i < STK_TRAIN_PACK; i++)
        v[i] = __bfloat162float(__ushort_as_bfloat16(pack.part[i]));
}
static __device__ __forceinline__ void store_pack(__nv_bfloat16 *p, const float *v)
{
    pack16 pack;
#pragma unroll
    for (int i = 0; i < STK_TRAIN_PACK; i++)
        pack.part[i] = __bfloat16_as_ushort(__float2bfloat16_rn(v[i]));
    *(uint4 *)p = pack.whole;
}

/* ---- WIDTH adjacent elements: 1, or as many as 16 bytes hold, aligned to that ---------------- */

template <class T> struct widest {
    enum { WIDTH = 16 / sizeof(T) };
};

template <int WIDTH> static __device__ __forceinline__ void load_wide(const float *p, float *v)
{
    if (WIDTH == 1) {
        v[0] = p[0];
        return;
    }
    const float4 four = *(const float4 *)p;
    v[0] = four.x, v[1 % WIDTH] = four.y, v[2 % WIDTH] = four.z, v[3 % WIDTH] = four.w;
}
template <int WIDTH> static __device__ __forceinline__ void store_wide(float *p, const float *v)
{
    if (WIDTH == 1)
        p[0] = v[0];
    else
        *(float4 *)p = make_float4(v[0], v[1 % WIDTH], v[2 % WIDTH], v[3 % WIDTH]);
}
template <int WIDTH, class T> static __device__ __forceinline__ void load_wide(const T *p, float *v)
{
    if (WIDTH == 1)
        v[0] = load(p, 0);
    else
        load_pack(p, v);
}
template <int WIDTH, class T>
static __device__ __forceinline__ void store_wide(T *p, const float *v)
{
    if (WIDTH == 1)
        store(p, 0, v[0]);
    else
        store_pack(p, v);
}

/* WIDTH values of an array [c] of float32. */
template <int WIDTH> static __device__ __forceinline__ void load_channels(const float *p, float *v)
{
#pragma unroll
    for (int i = 0; i < WIDTH; i += 4)
        load_wide<WIDTH == 1 ? 1 : 4>(p + i, v + i);
}

/* ---- eight elements, the last ones perhaps beyond the end ------------------------------------ */

/* Loads elements [first, first + PACK); those beyond `count` are 0. */
template <class T>
static __device__ __forceinline__ void load_some(const T *p, uint64_t first, uint64_t count,
                                                 float *v)
{
    if (first + STK_TRAIN_PACK <= count) {
        load_pack(p + first, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < STK_TRAIN_PACK; i++)
        v[i] = first + i < count ? load(p, first + i) : 0;
}
template <class T>
static __device__ __forceinline__ void store_some(T *p, uint64_t first, uint64_t count,
                                                  const float *v)
{
    if (first + STK_TRAIN_PACK <= count) {
        store_pack(p + first, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < STK_TRAIN_PACK; i++)
        if (first + i < count)
            store(p, first + i, v[i]);
}

/* Rounds a value as storing it does. */
static __device__ __forceinline__ float rounded(float value, const float *)
{
    return value;
}
static __device__ __forceinline__ float rounded(float value, const __half *)
{
    return __half2float(__float2half_rn(value));
}
static __device__ __forceinline__ float rounded(float value, const __nv_bfloat16 *)
{
    return __bfloat162float(__float2bfloat16_rn(value));
}

/* Defines NAME_f32, NAME_f16 and NAME_bf16 from a template `body<T>`, with these launch bounds. */
#define STK_KERNEL_BOUNDED(name, arguments, body, ...)                                             \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name##_f32(const struct arguments a) \
    {                                                                                              \
        body<float>(a);                                                                            \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name##_f16(const struct arguments a) \
    {                                                                                              \
        body<__half>(a);                                                                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__)                                      \
        name##_bf16(const struct arguments a)                                                      \
    {                                                                                              \
        body<__nv_bfloat16>(a);                                                                    \
    }

#define STK_KERNEL(name, arguments, body)                                                          \
    STK_KERNEL_BOUNDED(name, arguments, body, STK_LAUNCH_THREADS)

/* The first element of this thread and the distance to its next. */
static __device__ __forceinline__ uint64_t first_element(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ uint64_t element_stride(void)
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* The same for fewer than 2^31 elements: dividing then takes a third of the instructions. */
static __device__ __forceinline__ uint32_t first_element_32(void)
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ uint32_t element_stride_32(void)
{
    return gridDim.x * blockDim.x;
}

/* ---- sums in a fixed order ------------------------------------------------------------------- */

template <class V> static __device__ __forceinline__ V warp_sum(V value)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value += __shfl_down_sync(0xFFFFFFFFU, value, lanes);
    return value; /* valid in lane 0 */
}

/* Returns the block's sum in thread 0. `shared` holds one value per warp. */
template <class V> static __device__ __forceinline__ V block_sum(V value, V *shared)
{
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (lane == 0)
        shared[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x / 32 ? shared[lane] : V(0);
        value = warp_sum(value);
    }
    __syncthreads(); /* shared can be reused */
    return value;
}

/* Returns true in the last of `blocks` blocks to call this; its threads then see all earlier writes
 * of the others. `flag` is shared by the block. */
static __device__ __forceinline__ bool is_last_block(uint32_t *ticket, uint32_t blocks,
                                                     uint32_t *flag)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        *flag = atomicAdd(ticket, 1U) == blocks - 1 ? 1 : 0;
        if (*flag != 0)
            *ticket = 0; /* ready for the next launch */
    }
    __syncthreads();
    __threadfence();
    return *flag != 0;
}

#endif
