/* operands.h - where one operation's operands lie, for some of the samples of a pass.
 *
 *   operation + arenas + pass + samples [first, first + count)  ──▶  pointers
 *
 * Every pointer to something that grows with the batch stands at sample `first`. What an
 * operation does not have is NULL. */
#ifndef STK_TRAINER_BACKEND_COMMON_OPERANDS_H
#define STK_TRAINER_BACKEND_COMMON_OPERANDS_H

#include "trainer/backend/backend.h"

struct stk_operands {
    const struct stk_op *op;
    const struct stk_layer *layer;
    const struct stk_pass *pass;
    uint32_t number;       /* of the layer in the whole network: keys dropout */
    uint32_t first, count; /* samples of the pass */
    uint64_t elements;     /* of one sample of what is written: y, else dx */
    stoker_dtype storage; /* T of the plan. Operands in T that is narrower are pointed to as if they
                              were floats: narrow.h makes floats of them */

    const float *x, *x2;
    float *y; /* read only in backward operations */
    const float *dy;
    float *dx;
    void *aux;
    const void *labels; /* NULL = not wanted */

    const float *weight, *bias;     /* BatchNorm: gamma, beta */
    float *weight_grad, *bias_grad; /* added to */
    float *running_mean, *running_var;
};

/* Elements of one sample of a buffer, STK_SAMPLES or STK_NO_BUFFER (0). */
uint64_t stk_operands_elements(const struct stk_plan *plan, int32_t index);

void stk_operands_find(struct stk_operands *out, const struct stk_plan *plan,
                       const struct stk_op *op, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, uint32_t first, uint32_t count);

/* Whether a plan can run at all (windows of pooling fit their aux): 0 or STOKER_ELIMIT. */
int stk_operands_check_plan(const struct stk_plan *plan, stoker_error *error);

/* Whether all labels of the pass are classes: 0 or STOKER_EINVAL, telling the place in the batch.
 * To be asked before anything runs, so that a bad label changes nothing. */
int stk_operands_check_labels(const struct stk_plan *plan, const struct stk_pass *pass,
                              stoker_error *error);

static inline uint64_t stk_plane(struct stk_shape shape)
{
    return (uint64_t)shape.h * shape.w;
}

/* Pooling whose windows have more than 256 places keeps each maximum's place in two bytes. */
static inline bool stk_pool_is_wide(const struct stk_layer *layer)
{
    return (uint64_t)layer->kernel[0] * layer->kernel[1] > 256;
}

/* One axis of a window that starts at output `at` and may hang over the border:
 * places [begin, end) of the kernel lie inside the input; place k reads start + k. */
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
