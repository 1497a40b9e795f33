/* standin_cudnn.h - cuda/cudnn/graph.h without cuDNN, for tests: a graph is a list of operations; a
 * plan runs them by plain loops on a stream of standin_cuda.
 *
 * It replaces trainer/backend/cuda/cudnn/{graph,library,plan}.c in a program that links it. Stored
 * and virtual tensors are rounded to their type. It refuses what cuDNN would refuse or get wrong:
 * shapes that do not match, operands that are not bound, host memory, too little memory, bad
 * alignment.
 *
 * Each graph has three candidates:
 *
 *   0   nondeterministic           5000 bytes of workspace
 *   1   float32 as TF32            3000, but does not build for gradients of weights
 *   2   neither                    1000
 *
 * A run fills its workspace with bytes of 255, first and last, so that anything that shares it
 * reads NaN. */
#ifndef STK_TESTS_STANDIN_CUDNN_H
#define STK_TESTS_STANDIN_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

enum { STANDIN_CUDNN_CANDIDATES = 3 };

/* Engines that are built and fail when they run. */
struct standin_cudnn_failing {
    uint32_t candidates; /* bit i: candidate i; 0 = none */
    bool fused_only;     /* in graphs of several operations */
    uint64_t more_bytes; /* workspace that the others need besides what is said above */
    /* Its kernel faults: every later call of the runtime fails. Otherwise it is not launched. */
    bool loses_device;
};

/* For the test's main thread; a reset sets none. */
void standin_cudnn_fail(struct standin_cudnn_failing failing);

/* Reset the counts; fuses: there are engines for graphs of several operations. For the test's main
 * thread. */
void standin_cudnn_reset(bool fuses);

uint64_t standin_cudnn_plans(void);   /* plans built */
uint64_t standin_cudnn_rounded(void); /* plans built that round float32 to TF32 */
uint64_t standin_cudnn_runs(void);    /* plans enqueued */

#endif
