/* operations.h - the alternatives of choose.c besides the plain loops of `ref`. */
#ifndef STK_TRAINER_BACKEND_CPU_OPERATIONS_H
#define STK_TRAINER_BACKEND_CPU_OPERATIONS_H

#include "trainer/backend/cpu/step.h"

/* avx2/operations.c: fill in a step; false if there are no such loops, or this CPU lacks AVX2. */
bool stk_cpu_choose_avx2(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind);

/* bf16/operations.c: true if this CPU has AVX512_BF16, and the environment variable STOKER_BF16 is not "off". */
bool stk_cpu_has_bf16(void);
/* The same for a plan in bfloat16; batch: its most samples. Only if stk_cpu_has_bf16(). */
bool stk_cpu_choose_bf16(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind, uint32_t batch, uint32_t threads);

/* widened.c: the loops that a step has for floats, or else plain ones, on copies of 16-bit operands. */
void stk_cpu_choose_widened(struct stk_cpu_step *step, const struct stk_plan *plan,
                            const struct stk_op *op, uint32_t threads);

/* onednn/operations.c: fill in a step if oneDNN supports the operation and may be run (see
 * loader/base/environment.h), else leave it unchanged. STOKER_ENOMEM. */
int stk_cpu_choose_onednn(struct stk_cpu_step *step, const struct stk_plan *plan,
                          const struct stk_op *op, uint32_t threads);

/* batch_norm.c */
uint64_t stk_cpu_batch_norm_scratch_bytes(const struct stk_layer *layer);
uint64_t stk_cpu_batch_norm_shared_bytes(const struct stk_layer *layer, uint32_t threads);
stk_cpu_op stk_cpu_batch_norm_forward;
stk_cpu_op stk_cpu_batch_norm_backward;

/* Add the gradients of the biases in `share` of a linear layer. */
static inline void stk_cpu_add_bias_gradients(const struct stk_operands *o, struct stk_share share)
{
    const uint64_t out = stk_shape_elements(o->layer->out);
    for (uint64_t to = share.begin; o->bias_grad != NULL && to < share.end; to++) {
        float sum = 0;
        for (uint32_t n = 0; n < o->count; n++)
            sum += o->dy[n * out + to];
        o->bias_grad[to] += sum;
    }
}

#endif
