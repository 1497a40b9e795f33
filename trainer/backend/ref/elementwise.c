/* elementwise.c - operations on single elements: ReLU, sums, copies, dropout. */
#include "kernels/train/dropout.h"
#include "trainer/backend/common/vectors.h"
#include "trainer/backend/ref/operations.h"

#include <string.h>

static uint64_t all_elements(const struct stk_operands *o)
{
    return o->elements * o->count;
}

STK_VECTOR_BODY rectify_body(float *y, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays NaN */
}
STK_VECTORS(rectify, (float *y, const float *x, uint64_t count), (y, x, count))

void stk_ref_relu_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    rectify(o->y, o->x, all_elements(o));
}

STK_VECTOR_BODY pass_on_body(float *dx, const float *y, const float *dy, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}
STK_VECTORS(pass_on, (float *dx, const float *y, const float *dy, uint64_t count),
            (dx, y, dy, count))

void stk_ref_relu_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    pass_on(o->dx, o->y, o->dy, all_elements(o));
}

STK_VECTOR_BODY add_body(float *sum, const float *a, const float *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}
STK_VECTORS(add, (float *sum, const float *a, const float *b, uint64_t count), (sum, a, b, count))

void stk_ref_add_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    add(o->y, o->x, o->x2, all_elements(o));
}

void stk_ref_accumulate(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    add(o->dx, o->dx, o->dy, all_elements(o));
}

void stk_ref_copy(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    memcpy(o->dx, o->dy, all_elements(o) * sizeof(float));
}

/* The value is rounded when y is stored. */
void stk_ref_cast(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    memcpy(o->y, o->x, all_elements(o) * sizeof(float));
}

static void drop_elements(const struct stk_operands *o, float *to, const float *from)
{
    for (uint32_t sample = 0; sample < o->count; sample++) {
        const uint64_t in_step = o->pass->first_sample + o->first + sample;
        const struct stk_dropout dropout =
            stk_dropout_of(o->pass->seed, o->pass->step, o->number, in_step, o->layer->rate);
        for (uint64_t i = 0; i < o->elements; i++) {
            const uint64_t at = sample * o->elements + i;
            const float factor = stk_dropout_factor(&dropout, i);
            to[at] = factor > 0 ? from[at] * factor : 0;
        }
    }
}

void stk_ref_dropout_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    drop_elements(o, o->y, o->x);
}

void stk_ref_dropout_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    drop_elements(o, o->dx, o->dy);
}
