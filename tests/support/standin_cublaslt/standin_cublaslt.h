/* standin_cublaslt.h - libcublasLt without a GPU, for tests: the functions that the trainer calls,
 * by plain loops on a stream of standin_cuda.
 *
 * It replaces the library by having its soname. It refuses what cuBLASLt would refuse: layouts that
 * do not match, unknown types and epilogues, host memory, too little workspace or alignment. It has
 * two algorithms:
 *
 *   0   blocks share sums, in place   4096 bytes of workspace
 *   1   they do not                   0
 *
 * The first fills its workspace with bytes of 255, before and after. */
#ifndef STK_TESTS_STANDIN_CUBLASLT_H
#define STK_TESTS_STANDIN_CUBLASLT_H

#include <stdbool.h>
#include <stdint.h>

/* Algorithms that fail when they run. */
struct standin_cublaslt_failing {
    uint32_t algorithms; /* bit i: algorithm i of a list; 0 = none */
    bool fused_only;     /* with an epilogue */
    /* Its kernel faults: every later call of the runtime fails. Otherwise it is not launched. */
    bool loses_device;
};

/* For the test's main thread; a reset sets none. */
void standin_cublaslt_fail(struct standin_cublaslt_failing failing);

/* Enables or disables epilogues and resets the counts. For the test's main thread. */
void standin_cublaslt_reset(bool epilogues);

/* true: the library finds no driver that is new enough, until a reset. */
void standin_cublaslt_refuse(bool refuses);

uint64_t standin_cublaslt_runs(void); /* products enqueued */
int64_t standin_cublaslt_live(
    void); /* handles, descriptors, layouts and preferences not destroyed */

#endif
