/* elementwise.c - ReLU and sums, eight elements at a time. */
#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include "trainer/backend/cpu/avx2/lanes.h"

/* Loads and stores of the `count` (1..8) elements at i. */
STK_AVX2_INLINE __m256 load(const float *from, uint64_t count)
{
    return count == STK_LANES ? _mm256_loadu_ps(from)
                              : _mm256_maskload_ps(from, stk_first_lanes(count));
}

STK_AVX2_INLINE void store(float *to, __m256 v, uint64_t count)
{
    if (count == STK_LANES)
        _mm256_storeu_ps(to, v);
    else
        _mm256_maskstore_ps(to, stk_first_lanes(count), v);
}

STK_AVX2_INLINE uint64_t lanes_at(uint64_t i, uint64_t count)
{
    return count - i < STK_LANES ? count - i : STK_LANES;
}

STK_AVX2 void stk_avx2_relu_forward(float *y, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_LANES) {
        const uint64_t lanes = lanes_at(i, count);
        /* max(0, x) in this order keeps NaN. */
        store(y + i, _mm256_max_ps(_mm256_setzero_ps(), load(x + i, lanes)), lanes);
    }
}

STK_AVX2 void stk_avx2_relu_backward(float *dx, const float *y, const float *dy, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_LANES) {
        const uint64_t lanes = lanes_at(i, count);
        const __m256 on = _mm256_cmp_ps(load(y + i, lanes), _mm256_setzero_ps(), _CMP_GT_OQ);
        store(dx + i, _mm256_and_ps(on, load(dy + i, lanes)), lanes);
    }
}

STK_AVX2 void stk_avx2_add(float *sum, const float *a, const float *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_LANES) {
        const uint64_t lanes = lanes_at(i, count);
        store(sum + i, _mm256_add_ps(load(a + i, lanes), load(b + i, lanes)), lanes);
    }
}
#endif
