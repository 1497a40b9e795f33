/* operations.h - the alternatives of choose.c besides the plain loops of `ref`. */
#ifndef STK_TRAINER_BACKEND_CPU_OPERATIONS_H
#define STK_TRAINER_BACKEND_CPU_OPERATIONS_H

#include "trainer/backend/cpu/step.h"

/* avx2/operations.c: fill in a step; false if there are no such loops, or this CPU lacks AVX2. */
bool stk_cpu_choose_avx2(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind);

/* onednn/operations.c: true if oneDNN may be run, this CPU has AVX512_BF16, and the environment
 * variable STOKER_BF16 is not "off". */
#ifdef STOKER_HAVE_DNNL
bool stk_cpu_has_bf16(void);
#else
static inline bool stk_cpu_has_bf16(void)
{
    return false;
}
#endif
/* onednn/operations.c: fill in a step if oneDNN has fast code for the operation in this type and
 * may be run (see loader/base/environment.h), else leave it unchanged. STOKER_ENOMEM. */
int stk_cpu_choose_onednn(struct stk_cpu_step *step, const struct stk_plan *plan,
                          const struct stk_op *op, stoker_dtype storage, uint32_t threads);

/* widened.c: run a step's loops for floats on copies of 16-bit operands. */
void stk_cpu_choose_widened(struct stk_cpu_step *step, const struct stk_plan *plan,
                            const struct stk_op *op, uint32_t threads);

/* batch_norm.c */
uint64_t stk_cpu_batch_norm_scratch_bytes(const struct stk_layer *layer);
uint64_t stk_cpu_batch_norm_shared_bytes(const struct stk_layer *layer, uint32_t threads);
stk_cpu_op stk_cpu_batch_norm_forward;
stk_cpu_op stk_cpu_batch_norm_backward;

#endif
