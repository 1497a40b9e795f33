/* form.h - one graph of forms.h on a device: its engine chosen, prepared, and run.
 *
 *   form, shape, T, rules ──▶ graph ──▶ engines ──▶ plan, and the numbers of its operands
 *                                        │ each runs on zeros before it is taken: one that fails is replaced by the next.
 *                                        └ benchmark: it is timed, which does not depend on the values */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_FORM_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_FORM_H

#include "trainer/backend/cuda/cudnn/forms.h"
#include "trainer/backend/cuda/device/math.h"

/* Zeroed = none. */
struct stk_cuda_form {
    struct stk_cudnn_plan *plan;
    struct stk_form_operands operands;
};

/* Choose an engine that meets the rules and runs, and prepare it. STOKER_ENOTSUP: there is none;
 * STOKER_ENOMEM; STOKER_EDEVICE: cuDNN failed, or the device is lost. On failure *form is
 * unchanged. failures->first is set to the first failed run of all forms that share it. */
int stk_cuda_form_make(struct stk_cuda_form *form, const struct stk_cuda_math *math,
                       const struct stk_engine_rules *rules, enum stk_form kind,
                       const struct stk_form_shape *shape, struct stk_engine_failures *failures,
                       stoker_error *error);
void stk_cuda_form_drop(struct stk_cuda_form *form);

/* The addresses of a graph's tensors. */
struct stk_cuda_bound {
    struct stk_cudnn_binding binding[STK_CUDNN_TENSORS_MAX];
    uint32_t count;
};

/* Does nothing for a tensor that the form does not have (0). */
static inline void stk_cuda_bind(struct stk_cuda_bound *bound, stk_cudnn_ref tensor,
                                 const void *data)
{
    if (tensor != 0)
        bound->binding[bound->count++] = (struct stk_cudnn_binding){ tensor, (void *)data };
}

int stk_cuda_form_run(const struct stk_cuda_form *form, const struct stk_cuda_bound *bound,
                      void *workspace, void *stream, stoker_error *error);

#endif
