/* set.h - the operations of a plan, prepared for one count of samples, and queued.
 *
 *   plan, count ──▶ an object for each convolution and linear layer */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_SET_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_SET_H

#include "trainer/backend/cuda/program/operation.h"
#include "trainer/plan/slices.h"

struct stk_cuda_made;

/* Zeroed = none. */
struct stk_cuda_set {
    uint32_t count;             /* samples; 0 = not prepared */
    uint32_t operations;        /* number of operations of the plan */
    struct stk_cuda_made *made; /* [operations] */
};

/* Prepare all operations. STOKER_ENOMEM, or the error of an operation's create; then *set is
 * unchanged. */
int stk_cuda_set_make(struct stk_cuda_set *set, const struct stk_cuda_math *math,
                      const struct stk_plan *plan, uint32_t count, stoker_error *error);
void stk_cuda_set_drop(struct stk_cuda_set *set); /* does not use the plan */

/* The most that any one operation needs. */
uint64_t stk_cuda_set_workspace_bytes(const struct stk_cuda_set *set, const struct stk_plan *plan);
uint64_t stk_cuda_set_tickets(const struct stk_plan *plan);

/* Queue all operations in order; they share the workspace. slices: what of the gradients to sum
 * over the ranks, each after its last writer; NULL = nothing. The set of a pass without samples is
 * only its number of operations. */
int stk_cuda_set_queue(const struct stk_cuda_set *set, struct stk_backend *backend,
                       const struct stk_plan *plan, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, const struct stk_cuda_scratch *scratch,
                       const struct stk_cuda_pass *extra, const struct stk_slices *slices,
                       stoker_error *error);

#endif
