/* pool.c - maximum pooling with windows side by side, eight channels at a time. */
#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include "trainer/backend/cpu/avx2/lanes.h"

#include <string.h>

bool stk_avx2_pools(const struct stk_layer *layer)
{
    return layer->in.c % STK_LANES == 0 && !stk_pool_is_wide(layer) && layer->padding[0] == 0 &&
           layer->padding[1] == 0 && layer->stride[0] == layer->kernel[0] &&
           layer->stride[1] == layer->kernel[1];
}

/* Eight positions, each < 256, as bytes. */
STK_AVX2_INLINE void store_places(uint8_t *to, __m256i places)
{
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(places), _mm256_extracti128_si256(places, 1));
    _mm_storel_epi64((__m128i_u *)to, _mm_packus_epi16(words, words));
}

/* Eight channels of one window. A NaN wins and stays. With ReLU, then max(0, y): in this order it
 * keeps NaN. */
STK_AVX2_INLINE void maximum(const struct stk_layer *layer, bool relu, const float *x, float *y,
                             uint8_t *aux)
{
    const uint64_t row_floats = (uint64_t)layer->in.w * layer->in.c;
    __m256 best = _mm256_loadu_ps(x);
    __m256i places = _mm256_setzero_si256();
    int place = 0;
    for (uint32_t r = 0; r < layer->kernel[0]; r++)
        for (uint32_t s = 0; s < layer->kernel[1]; s++, place++) {
            const __m256 v = _mm256_loadu_ps(x + r * row_floats + (uint64_t)s * layer->in.c);
            /* not (v <= best): larger, or one is NaN; then only if best is not NaN */
            const __m256 larger = _mm256_and_ps(_mm256_cmp_ps(v, best, _CMP_NLE_UQ),
                                                _mm256_cmp_ps(best, best, _CMP_ORD_Q));
            best = _mm256_blendv_ps(best, v, larger);
            places =
                _mm256_blendv_epi8(places, _mm256_set1_epi32(place), _mm256_castps_si256(larger));
        }
    _mm256_storeu_ps(y, relu ? _mm256_max_ps(_mm256_setzero_ps(), best) : best);
    if (aux != NULL)
        store_places(aux, places);
}

STK_AVX2 void stk_avx2_max_pool_forward(const struct stk_operands *o)
{
    const struct stk_layer *layer = o->layer;
    const uint64_t row_floats = (uint64_t)layer->in.w * layer->in.c;
    float *y = o->y;
    uint8_t *aux = o->aux;
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < layer->out.h; oh++)
            for (uint32_t ow = 0; ow < layer->out.w; ow++) {
                const float *x = o->x +
                                 (n * (uint64_t)layer->in.h + oh * layer->kernel[0]) * row_floats +
                                 (uint64_t)ow * layer->kernel[1] * layer->in.c;
                for (uint32_t c = 0; c < layer->in.c; c += STK_LANES) {
                    maximum(layer, o->op->relu, x + c, y, aux);
                    y += STK_LANES;
                    aux = aux == NULL ? NULL : aux + STK_LANES;
                }
            }
}

/* Eight gradients: with ReLU those where y > 0, else 0. */
STK_AVX2_INLINE __m256 passed(const float *dy, const float *y)
{
    const __m256 value = _mm256_loadu_ps(dy);
    if (y == NULL)
        return value;
    const __m256 on = _mm256_cmp_ps(_mm256_loadu_ps(y), _mm256_setzero_ps(), _CMP_GT_OQ);
    return _mm256_and_ps(on, value);
}

/* Eight channels of one window: the gradient to where the maximum was, 0 elsewhere. */
STK_AVX2_INLINE void deal_out(const struct stk_layer *layer, __m256 value, const uint8_t *aux,
                              float *dx)
{
    const uint64_t row_floats = (uint64_t)layer->in.w * layer->in.c;
    const __m256i places = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)aux));
    int place = 0;
    for (uint32_t r = 0; r < layer->kernel[0]; r++)
        for (uint32_t s = 0; s < layer->kernel[1]; s++, place++) {
            const __m256i here = _mm256_cmpeq_epi32(places, _mm256_set1_epi32(place));
            _mm256_storeu_ps(dx + r * row_floats + (uint64_t)s * layer->in.c,
                             _mm256_and_ps(value, _mm256_castsi256_ps(here)));
        }
}

STK_AVX2 void stk_avx2_max_pool_backward(const struct stk_operands *o)
{
    const struct stk_layer *layer = o->layer;
    const uint64_t row_floats = (uint64_t)layer->in.w * layer->in.c;
    const float *dy = o->dy;
    const float *y = o->op->relu ? o->y : NULL;
    const uint8_t *aux = o->aux;
    /* The windows may not cover the lower and right border. */
    if (layer->out.h * layer->kernel[0] != layer->in.h ||
        layer->out.w * layer->kernel[1] != layer->in.w)
        memset(o->dx, 0, o->count * stk_shape_elements(layer->in) * sizeof(float));
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < layer->out.h; oh++)
            for (uint32_t ow = 0; ow < layer->out.w; ow++) {
                float *dx = o->dx +
                            (n * (uint64_t)layer->in.h + oh * layer->kernel[0]) * row_floats +
                            (uint64_t)ow * layer->kernel[1] * layer->in.c;
                for (uint32_t c = 0; c < layer->in.c; c += STK_LANES) {
                    deal_out(layer, passed(dy, y), aux, dx + c);
                    dy += STK_LANES;
                    y = y == NULL ? NULL : y + STK_LANES;
                    aux += STK_LANES;
                }
            }
}
#endif
