/* lanes.h - vectors of eight floats, and the attributes of functions that use them. */
#ifndef STK_TRAINER_BACKEND_CPU_AVX2_LANES_H
#define STK_TRAINER_BACKEND_CPU_AVX2_LANES_H

#include <immintrin.h>
#include <stdint.h>

#define STK_AVX2        __attribute__((target("avx2,fma")))
/* For functions whose loop counts are constants of the caller, so that their arrays of sums become
 * registers. */
#define STK_AVX2_INLINE static inline __attribute__((always_inline, target("avx2,fma")))

#if defined(__clang__)
#define STK_UNROLL _Pragma("unroll")
#else
#define STK_UNROLL _Pragma("GCC unroll 16")
#endif

enum { STK_LANES = 8 };

/* A mask of the first `count` (0..8) lanes. */
STK_AVX2_INLINE __m256i stk_first_lanes(uint64_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
}

#endif
