/* operands.h - addresses of one operation's operands, for some samples of a pass.
 *
 *   operation + arenas + pass + samples [first, first + count)  ──▶  pointers
 *
 * Pointers to data that grows with the batch are to sample `first`. Operands that an operation does
 * not have are NULL. */
#ifndef STK_TRAINER_BACKEND_COMMON_OPERANDS_H
#define STK_TRAINER_BACKEND_COMMON_OPERANDS_H

#include "trainer/backend/backend.h"

struct stk_operands {
    const struct stk_op *op;
    const struct stk_layer *layer;
    const struct stk_pass *pass;
    uint32_t number;       /* index of the layer in the whole network: keys dropout */
    uint32_t first, count; /* samples of the pass */
    uint64_t elements;     /* per sample of the result: y, else dx */
    /* T of the plan. Operands in a 16-bit T are cast to float pointers; ref/narrow.h converts them.
     * */
    stoker_dtype storage;

    const float *x, *x2;
    float *y; /* read-only in backward operations */
    const float *dy;
    float *dx;
    void *aux;
    const void *labels; /* NULL = skip the loss */

    const float *weight, *bias;     /* BatchNorm: gamma, beta */
    float *weight_grad, *bias_grad; /* added to */
    float *running_mean, *running_var;
    double *batch_mean, *batch_var; /* written instead of them, unless NULL */
};

/* Elements per sample of a buffer or of STK_SAMPLES; 0 for STK_NO_BUFFER. */
uint64_t stk_operands_elements(const struct stk_plan *plan, int32_t index);

void stk_operands_find(struct stk_operands *out, const struct stk_plan *plan,
                       const struct stk_op *op, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, uint32_t first, uint32_t count);

/* Check that pooling windows fit their aux. 0 or STOKER_ELIMIT. */
int stk_operands_check_plan(const struct stk_plan *plan, stoker_error *error);

/* Check that all labels of the pass are in range. 0, or STOKER_EINVAL with the position in the
 * batch. Call it before anything runs, so that a bad label changes nothing. */
int stk_operands_check_labels(const struct stk_plan *plan, const struct stk_pass *pass,
                              stoker_error *error);

static inline uint64_t stk_plane(struct stk_shape shape)
{
    return (uint64_t)shape.h * shape.w;
}

/* True if a window has more than 256 elements: the position of a maximum then takes two bytes. */
static inline bool stk_pool_is_wide(const struct stk_layer *layer)
{
    return (uint64_t)layer->kernel[0] * layer->kernel[1] > 256;
}

/* One axis of the window of output `at`, which may extend past the border: kernel positions [begin,
 * end) are inside the input; position k reads start + k. */
struct stk_window {
    int64_t start;
    uint32_t begin, end;
};

static inline struct stk_window stk_window_at(uint32_t at, uint32_t kernel, uint32_t stride,
                                              uint32_t padding, uint32_t extent)
{
    int64_t start = (int64_t)at * stride - padding;
    int64_t end = (int64_t)extent - start;
    return (struct stk_window){ .start = start,
                                .begin = start < 0 ? (uint32_t)-start : 0U,
                                .end = end < (int64_t)kernel ? (uint32_t)end : kernel };
}

#endif
