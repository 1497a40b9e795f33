/* standin_cudnn.h - cudnn_graph.h without cuDNN, for tests: a graph is a list of operations, a plan runs
 * them by plain loops on a stream of standin_cuda.
 *
 * A program that links this has no use for trainer/backend/cuda/cudnn/{graph,library,plan}.c. What is stored, or
 * passes between operations, is rounded to its tensor's type. It refuses what cuDNN
 * would, or would do wrong with: shapes that do not fit together, operands that are not bound, host
 * memory, too little of it, bad alignment.
 *
 * Each graph has three candidates:
 *
 *   0   nondeterministic           5000 bytes of workspace
 *   1   float32 as TF32            3000, but does not build for graphs that add to their result
 *   2   neither                    1000
 *
 * A run fills its workspace with bytes of 255, first and last, so that anything that shares it reads NaN. */
#ifndef STK_TESTS_STANDIN_CUDNN_H
#define STK_TESTS_STANDIN_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

enum { STANDIN_CUDNN_CANDIDATES = 3 };

/* Graphs of several operations have no engine, or do; counts at zero. For the test's main thread. */
void standin_cudnn_reset(bool fuses);

uint64_t standin_cudnn_plans(void);   /* built */
uint64_t standin_cudnn_rounded(void); /* of those, that round float32 to TF32 */
uint64_t standin_cudnn_runs(void);    /* enqueued */

#endif
