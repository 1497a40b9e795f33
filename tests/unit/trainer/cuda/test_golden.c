/* test_golden.c - the same twenty steps on the `cuda` back end, recorded as graphs, through the
 * stand-ins for the runtime, cuDNN and cuBLASLt.
 */
#include "support/trainer/trainer_golden_runs.h"

#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"

CleanTest(trainer_cuda_golden, the_cuda_back_end_trains_as_pytorch_does)
{
    for (int i = 0; i < GOLDEN_RUNS; i++) {
        if (!golden_runs[i].residual && golden_runs[i].optimizer != STOKER_OPTIMIZER_SGD)
            continue; /* the large network once: all is plain loops here */
        standin_cuda_reset(1);
        standin_cuda_delay(0);
        standin_cuda_use_kernels();
        golden_train(&golden_runs[i], "cuda");
        cr_assert_gt(standin_cuda_graph_launches(), 15);
    }
}
