/* set.h - the operations of a plan made for one count of samples, and queued.
 *
 *   plan, count ──▶ an object for each convolution and linear layer */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_SET_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_SET_H

#include "trainer/backend/cuda/program/operation.h"

struct stk_cuda_made;

/* All zero is none. */
struct stk_cuda_set {
    uint32_t count;             /* samples; 0 = not made */
    uint32_t operations;        /* of the plan */
    struct stk_cuda_made *made; /* one for each operation */
};

/* Make all of it. STOKER_ENOMEM, or what an operation's create returned; then *set is as before. */
int stk_cuda_set_make(struct stk_cuda_set *set, const struct stk_cuda_math *math,
                      const struct stk_plan *plan, uint32_t count, stoker_error *error);
void stk_cuda_set_drop(struct stk_cuda_set *set); /* knows no plan, which may be gone */

/* The most that one of the operations takes. */
uint64_t stk_cuda_set_workspace_bytes(const struct stk_cuda_set *set, const struct stk_plan *plan);
uint64_t stk_cuda_set_tickets(const struct stk_plan *plan);

/* Queue all operations, in order; each finds the workspace as the one before left it. */
int stk_cuda_set_queue(const struct stk_cuda_set *set, struct stk_backend *backend,
                       const struct stk_plan *plan, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, const struct stk_cuda_scratch *scratch,
                       const struct stk_cuda_pass *beside, stoker_error *error);

#endif
