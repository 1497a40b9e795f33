/* pool.c - maximum pooling with windows side by side, sixteen channels at a time. */
#include "trainer/backend/cpu/bf16/kernels.h"

#ifdef STK_HAVE_BF16
#include "trainer/backend/cpu/bf16/lanes.h"

bool stk_bf16_pools(const struct stk_layer *layer)
{
    return !stk_pool_is_wide(layer) && layer->padding[0] == 0 && layer->padding[1] == 0 &&
           layer->stride[0] == layer->kernel[0] && layer->stride[1] == layer->kernel[1];
}

STK_BF16_INLINE __m256i load(const uint16_t *from, __mmask16 lanes)
{
    return _mm256_maskz_loadu_epi16(lanes, from);
}

STK_BF16_INLINE void store_places(uint8_t *to, __mmask16 lanes, __m128i places)
{
    if (lanes == 0xFFFF)
        _mm_storeu_si128((__m128i_u *)to, places);
    else
        _mm_mask_storeu_epi8(to, lanes, places);
}

/* The maximum of a part of a window so far, and its place. */
struct best {
    __m512 value;
    __m512i place;
};

/* The better of two parts. The first stays if they are equal. A NaN wins and stays. */
STK_BF16_INLINE struct best better(struct best first, struct best second)
{
    /* not (second <= first): larger, or one is NaN; then only if the first is not NaN */
    const __mmask16 ordered = _mm512_cmp_ps_mask(first.value, first.value, _CMP_ORD_Q);
    const __mmask16 larger =
        _mm512_mask_cmp_ps_mask(ordered, second.value, first.value, _CMP_NLE_UQ);
    return (struct best){ _mm512_mask_mov_ps(first.value, larger, second.value),
                          _mm512_mask_mov_epi32(first.place, larger, second.place) };
}

/* Up to sixteen channels of one window, of kernel_w columns: place by place, or, if 2 x 2, by pairs. */
STK_BF16_INLINE struct best maximum(const struct stk_layer *layer, const uint16_t *x,
                                    __mmask16 lanes, const bool two_by_two)
{
    const uint64_t row = (uint64_t)layer->in.w * layer->in.c;
    const uint64_t column = layer->in.c;
#define PLACE(at, number)                                                                          \
    ((struct best){ stk_bf16_widen(load(x + (at), lanes)), _mm512_set1_epi32(number) })
    if (two_by_two)
        return better(better(PLACE(0, 0), PLACE(column, 1)),
                      better(PLACE(row, 2), PLACE(row + column, 3)));
    struct best best = PLACE(0, 0);
    int place = 0;
    for (uint32_t r = 0; r < layer->kernel[0]; r++)
        for (uint32_t s = 0; s < layer->kernel[1]; s++, place++)
            best = better(best, PLACE(r * row + s * column, place));
    return best;
#undef PLACE
}

/* All channels of one window. */
STK_BF16_INLINE void pool_window(const struct stk_layer *layer, bool relu, const uint16_t *x,
                                 uint16_t *y, uint8_t *aux, const bool two_by_two)
{
    for (uint32_t c = 0; c < layer->in.c; c += STK_BF16_FLOATS) {
        const __mmask16 lanes = stk_bf16_first_floats(layer->in.c - c);
        const struct best best = maximum(layer, x + c, lanes, two_by_two);
        /* In this order max(0, y) keeps NaN. */
        const __m512 value = relu ? _mm512_max_ps(_mm512_setzero_ps(), best.value) : best.value;
        /* Exact: the value was a bfloat16. */
        const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(value), 16);
        stk_bf16_store_half(y + c, lanes, _mm512_cvtepi32_epi16(bits));
        if (aux != NULL)
            store_places(aux + c, lanes, _mm512_cvtepi32_epi8(best.place));
    }
}

STK_BF16_INLINE void pool(const struct stk_operands *o, const bool two_by_two)
{
    const struct stk_layer *layer = o->layer;
    const uint64_t row_elements = (uint64_t)layer->in.w * layer->in.c;
    const uint16_t *from = (const uint16_t *)(const void *)o->x;
    uint16_t *y = (uint16_t *)(void *)o->y;
    uint8_t *aux = o->aux;
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < layer->out.h; oh++)
            for (uint32_t ow = 0; ow < layer->out.w; ow++) {
                const uint16_t *x =
                    from + (n * (uint64_t)layer->in.h + oh * layer->kernel[0]) * row_elements +
                    (uint64_t)ow * layer->kernel[1] * layer->in.c;
                pool_window(layer, o->op->relu, x, y, aux, two_by_two);
                y += layer->in.c;
                aux = aux == NULL ? NULL : aux + layer->in.c;
            }
}

STK_BF16 void stk_bf16_max_pool_forward(const struct stk_operands *o)
{
    if (o->layer->kernel[0] == 2 && o->layer->kernel[1] == 2)
        pool(o, true);
    else
        pool(o, false);
}

/* Up to sixteen gradients: with ReLU those where y > 0, else 0. */
STK_BF16_INLINE __m256i passed(const uint16_t *dy, const uint16_t *y, __mmask16 lanes)
{
    if (y == NULL)
        return load(dy, lanes);
    const __m512 value = stk_bf16_widen(load(y, lanes));
    return load(dy, _mm512_mask_cmp_ps_mask(lanes, value, _mm512_setzero_ps(), _CMP_GT_OQ));
}

/* Up to sixteen channels of one window: the gradient to where the maximum was, 0 elsewhere. */
STK_BF16_INLINE void deal_out(const struct stk_layer *layer, __m256i value, const uint8_t *aux,
                              uint16_t *dx, __mmask16 lanes)
{
    const uint64_t row_elements = (uint64_t)layer->in.w * layer->in.c;
    const __m128i places = _mm_maskz_loadu_epi8(lanes, aux);
    int place = 0;
    for (uint32_t r = 0; r < layer->kernel[0]; r++)
        for (uint32_t s = 0; s < layer->kernel[1]; s++, place++) {
            const __mmask16 here = _mm_cmpeq_epi8_mask(places, _mm_set1_epi8((char)place));
            stk_bf16_store_half(dx + r * row_elements + (uint64_t)s * layer->in.c, lanes,
                                _mm256_maskz_mov_epi16(here, value));
        }
}

STK_BF16 void stk_bf16_max_pool_backward(const struct stk_operands *o)
{
    const struct stk_layer *layer = o->layer;
    const uint64_t row_elements = (uint64_t)layer->in.w * layer->in.c;
    const uint16_t *dy = (const uint16_t *)(const void *)o->dy;
    const uint16_t *y = o->op->relu ? (const uint16_t *)(const void *)o->y : NULL;
    uint16_t *to = (uint16_t *)(void *)o->dx;
    const uint8_t *aux = o->aux;
    /* The windows may not cover the lower and right border. */
    if (layer->out.h * layer->kernel[0] != layer->in.h ||
        layer->out.w * layer->kernel[1] != layer->in.w)
        memset(to, 0, o->count * stk_shape_elements(layer->in) * sizeof(*to));
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < layer->out.h; oh++)
            for (uint32_t ow = 0; ow < layer->out.w; ow++) {
                uint16_t *dx = to +
                               (n * (uint64_t)layer->in.h + oh * layer->kernel[0]) * row_elements +
                               (uint64_t)ow * layer->kernel[1] * layer->in.c;
                for (uint32_t c = 0; c < layer->in.c; c += STK_BF16_FLOATS) {
                    const __mmask16 lanes = stk_bf16_first_floats(layer->in.c - c);
                    deal_out(layer, passed(dy + c, y == NULL ? NULL : y + c, lanes), aux + c,
                             dx + c, lanes);
                }
                dy += layer->in.c;
                y = y == NULL ? NULL : y + layer->in.c;
                aux += layer->in.c;
            }
}
#endif
