/* form.h - one graph of forms.h made ready on a device: its engine chosen, and run.
 *
 *   form, shape, T, rules ──▶ graph ──▶ engines ──▶ plan, and the numbers of its operands
 *                                        │ benchmark: each is run on zeros, as what it takes does
 *                                        └ not depend on the numbers */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_FORM_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_FORM_H

#include "trainer/backend/cuda/cudnn/forms.h"
#include "trainer/backend/cuda/device/math.h"

/* All zero is none. */
struct stk_cuda_form {
    struct stk_cudnn_plan *plan;
    struct stk_form_operands operands;
};

/* Choose an engine within the rules and make it ready. STOKER_ENOTSUP: there is none; STOKER_ENOMEM;
 * STOKER_EDEVICE: cuDNN failed, in its words. On failure *form is as before. */
int stk_cuda_form_make(struct stk_cuda_form *form, const struct stk_cuda_math *math,
                       const struct stk_engine_rules *rules, enum stk_form kind,
                       const struct stk_form_shape *shape, stoker_error *error);
void stk_cuda_form_drop(struct stk_cuda_form *form);

/* Where a graph's tensors lie. */
struct stk_cuda_bound {
    struct stk_cudnn_binding binding[STK_CUDNN_TENSORS_MAX];
    uint32_t count;
};

/* A tensor that the form does not have (0) is left out. */
static inline void stk_cuda_bind(struct stk_cuda_bound *bound, stk_cudnn_ref tensor,
                                 const void *data)
{
    if (tensor != 0)
        bound->binding[bound->count++] = (struct stk_cudnn_binding){ tensor, (void *)data };
}

int stk_cuda_form_run(const struct stk_cuda_form *form, const struct stk_cuda_bound *bound,
                      void *workspace, void *stream, stoker_error *error);

#endif
