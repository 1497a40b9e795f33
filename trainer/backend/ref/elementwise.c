/* elementwise.c - operations on single elements: ReLU, sums, copies, dropout. */
#include "kernels/train/dropout.h"
#include "trainer/backend/ref/operations.h"

#include <string.h>

static uint64_t all_elements(const struct stk_operands *o)
{
    return o->elements * o->count;
}

void stk_ref_relu_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for (uint64_t i = 0; i < all_elements(o); i++)
        o->y[i] = o->x[i] < 0 ? 0 : o->x[i]; /* NaN stays NaN */
}

void stk_ref_relu_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for (uint64_t i = 0; i < all_elements(o); i++)
        o->dx[i] = o->y[i] > 0 ? o->dy[i] : 0;
}

void stk_ref_add_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for (uint64_t i = 0; i < all_elements(o); i++)
        o->y[i] = o->x[i] + o->x2[i];
}

void stk_ref_accumulate(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for (uint64_t i = 0; i < all_elements(o); i++)
        o->dx[i] += o->dy[i];
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

static void drop(const struct stk_operands *o, float *to, const float *from)
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
    drop(o, o->y, o->x);
}

void stk_ref_dropout_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    drop(o, o->dx, o->dy);
}
