/* gather.cu - see gather.h. The host version is in gather.c. */
#include "bench/device/gather.h"

/* What 16 bytes of output are made of. */
struct of_bytes {
    using piece = uint4;
    static __device__ uint4 made(uint4 stored, float, float)
    {
        return stored;
    }
};

static __device__ float scaled(uint32_t word, int byte, float factor, float bias)
{
    return fmaf((float)(word >> 8 * byte & 0xff), factor, bias);
}

struct of_float32 {
    using piece = uint32_t;
    static __device__ uint4 made(uint32_t stored, float factor, float bias)
    {
        return make_uint4(__float_as_uint(scaled(stored, 0, factor, bias)),
                          __float_as_uint(scaled(stored, 1, factor, bias)),
                          __float_as_uint(scaled(stored, 2, factor, bias)),
                          __float_as_uint(scaled(stored, 3, factor, bias)));
    }
};

/* To nearest, ties to even; the values are finite. */
static __device__ uint32_t bfloat16_of(float value)
{
    const uint32_t bits = __float_as_uint(value);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static __device__ uint32_t two_of(uint32_t word, int byte, float factor, float bias)
{
    return bfloat16_of(scaled(word, byte, factor, bias)) |
           bfloat16_of(scaled(word, byte + 1, factor, bias)) << 16;
}

struct of_bfloat16 {
    using piece = uint2;
    static __device__ uint4 made(uint2 stored, float factor, float bias)
    {
        return make_uint4(two_of(stored.x, 0, factor, bias), two_of(stored.x, 2, factor, bias),
                          two_of(stored.y, 0, factor, bias), two_of(stored.y, 2, factor, bias));
    }
};

template <typename element> static __device__ void gather_rows(const bench_gather &gather)
{
    using piece = typename element::piece;
    const uint32_t warp = threadIdx.x / BENCH_GATHER_LANES, lane = threadIdx.x % BENCH_GATHER_LANES;
    const uint64_t row = (uint64_t)blockIdx.x * (BENCH_GATHER_THREADS / BENCH_GATHER_LANES) + warp;
    if (row >= gather.count)
        return;
    const uint64_t pieces = gather.row_bytes / sizeof(piece);
    const piece *from = (const piece *)(gather.rows + gather.numbers[row] * gather.row_bytes);
    uint4 *to = (uint4 *)gather.out + row * pieces;
    const uint64_t first = (uint64_t)blockIdx.y * BENCH_GATHER_STORES * BENCH_GATHER_LANES + lane;
    piece stored[BENCH_GATHER_STORES];
#pragma unroll /* all loads before the first store: as many as fit are on their way at once */
    for (int i = 0; i < BENCH_GATHER_STORES; i++)
        if (first + i * BENCH_GATHER_LANES < pieces)
            stored[i] = from[first + i * BENCH_GATHER_LANES];
#pragma unroll
    for (int i = 0; i < BENCH_GATHER_STORES; i++)
        if (first + i * BENCH_GATHER_LANES < pieces)
            to[first + i * BENCH_GATHER_LANES] =
                element::made(stored[i], gather.factor, gather.bias);
}

extern "C" __global__ void bench_gather_1(const bench_gather gather)
{
    gather_rows<of_bytes>(gather);
}

extern "C" __global__ void bench_gather_2(const bench_gather gather)
{
    gather_rows<of_bfloat16>(gather);
}

extern "C" __global__ void bench_gather_4(const bench_gather gather)
{
    gather_rows<of_float32>(gather);
}
