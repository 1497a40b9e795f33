/* standin_cublaslt.h - libcublasLt without a GPU, for tests: the functions that the trainer calls, by
 * plain loops on a stream of standin_cuda.
 *
 * It takes the library's place by its soname. It refuses what cuBLASLt would: layouts that do not fit
 * together, types and epilogues it does not know, host memory, less workspace or alignment than was
 * agreed on. Two algorithms:
 *
 *   0   sums are shared by blocks, in place   4096 bytes of workspace
 *   1   they are not                          0
 *
 * The first fills its workspace with bytes of 255, first and last. */
#ifndef STK_TESTS_STANDIN_CUBLASLT_H
#define STK_TESTS_STANDIN_CUBLASLT_H

#include <stdbool.h>
#include <stdint.h>

/* Enables or disables epilogues and resets the counts. For the test's main thread. */
void standin_cublaslt_reset(bool epilogues);

uint64_t standin_cublaslt_runs(void); /* enqueued */
int64_t standin_cublaslt_live(void);  /* handles, descriptors, layouts, preferences */

#endif
