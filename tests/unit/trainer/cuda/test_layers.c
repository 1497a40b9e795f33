/* test_layers.c - the `cuda` back end does what `ref` does with each layer, in every type: by one
 * call of cuDNN or cuBLASLt with bias and ReLU, or by kernels of its own for these, and by engines
 * that were timed. Libraries and runtime are stand-ins, kernels run from their source. */
#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "support/standin_cublaslt/standin_cublaslt.h"
#include "support/standin_cudnn/standin_cudnn.h"
#include "support/trainer/layer_cases.h"

static void check_all(bool fused, const struct stk_backend_options *options)
{
    standin_cuda_reset(1);
    standin_cuda_delay(5);
    standin_cuda_use_kernels();
    standin_cudnn_reset(fused);
    standin_cublaslt_reset(fused);
    added_later = fused ? 0 : 1; /* a bias */
    for (int i = 0; i < LAYERS; i++)
        if (fused || layers[i].kind == STK_CONV2D || layers[i].kind == STK_LINEAR) {
            check_layer(&layers[i], &stk_backend_cuda, options);
            check_special_values(&layers[i], &stk_backend_cuda, options);
        }
    cr_assert_gt(standin_cudnn_runs(), 0);
    cr_assert_gt(standin_cublaslt_runs(), 0);
    cr_assert_eq(standin_cuda_violations(), 0);
    cr_assert_eq(standin_cublaslt_live(), 0);
    cr_assert_eq(standin_cuda_live(), 0);
}

CleanTest(trainer_cuda_layers, are_those_of_ref)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    for (int i = 0; i < 9; i++)
        check_all(i % 3 > 0, &(struct stk_backend_options){ .storage = types[i / 3],
                                                            .benchmark = i % 3 == 2,
                                                            .needs_convolutions = true,
                                                            .needs_linear = true });
}
