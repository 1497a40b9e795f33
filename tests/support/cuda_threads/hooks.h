/* hooks.h - what compiled kernels call: the position of the running thread, and everything that
 * more than one thread takes part in. device.h maps CUDA's names to it; the accesses to memory
 * arrive by the compiler's own hooks (access.c).
 *
 * Read by the runtime as C and by the kernels as C++.
 */
#ifndef STK_TEST_CUDA_THREADS_HOOKS_H
#define STK_TEST_CUDA_THREADS_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_index {
    unsigned x, y, z;
};

/* CUDA's threadIdx, blockIdx, blockDim, gridDim. */
struct cuda_where {
    struct cuda_index thread, block, size, grid;
};

enum cuda_site_kind { CUDA_SITE_BARRIER, CUDA_SITE_SHUFFLE, CUDA_SITE_FENCE, CUDA_SITE_BOUND };

/* A place in the source where threads meet, or where a mutant differs. Copies of a template have an
 * object each, and the same number. */
struct cuda_site {
    enum cuda_site_kind kind;
    int number; /* from 0, unique in a module */
    const char *file;
    int line;
};

extern const struct cuda_where *cuda_now; /* the running thread's; valid in a kernel */

void cuda_barrier(const struct cuda_site *site);

/* Replaces *value, of up to 8 bytes, by that of lane `source` of the warp. */
void cuda_shuffle(const struct cuda_site *site, uint32_t mask, int source, void *value,
                  size_t bytes);

void cuda_fence(const struct cuda_site *site);

/* Returns true if a comparison with a bound must include the bound: in a mutant. */
int cuda_bound(const struct cuda_site *site);

/* Called before an atomic operation, which then runs undisturbed. */
void cuda_atomic(void *at, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
