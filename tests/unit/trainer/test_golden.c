/* test_golden.c - twenty steps of two networks end where PyTorch ends.
 *
 * Method: trainer_golden_runs.h, both optimizers, both back ends.
 */
#include "support/trainer/trainer_golden_runs.h"

#include "support/leaks.h"

CleanTest(trainer_golden, the_cpu_back_end_trains_as_pytorch_does)
{
    for (int i = 0; i < GOLDEN_RUNS; i++)
        golden_train(&golden_runs[i], "cpu");
}

/* Its plain loops take seconds for the large network: one optimizer is enough there. */
CleanTest(trainer_golden, the_plain_back_end_trains_as_pytorch_does)
{
    for (int i = 0; i < GOLDEN_RUNS; i++)
        if (golden_runs[i].residual || golden_runs[i].optimizer == STOKER_OPTIMIZER_SGD)
            golden_train(&golden_runs[i], "ref");
}
