/* program.h - the `cpu` back end and its programs, as backend.c makes them and pass.c runs them.
 *
 * The program's block:  scratch of thread 0, 1, ... | shared memory of steps | partial gradients */
#ifndef STK_TRAINER_BACKEND_CPU_PROGRAM_H
#define STK_TRAINER_BACKEND_CPU_PROGRAM_H

#include "trainer/backend/cpu/step.h"

enum { STK_CPU_THREADS_MAX = 256 };

struct stk_backend {
    struct stk_thread_team *team;
    uint32_t threads;
    bool plain;
};

struct stk_program {
    struct stk_backend *backend;
    const struct stk_plan *plan;
    uint8_t *block;
    uint64_t block_bytes;
    uint64_t scratch_bytes; /* per thread */
    struct stk_cpu_step steps[];
};

/* choose.c: choose how a step runs, and what memory it needs; plain: only the loops of `ref`.
 * STOKER_ENOMEM. */
int stk_cpu_choose(struct stk_cpu_step *step, const struct stk_plan *plan, const struct stk_op *op,
                   uint32_t threads, bool plain);
/* choose.c: set barrier_before of all steps of a plan. */
void stk_cpu_place_barriers(struct stk_cpu_step *steps, const struct stk_plan *plan);

/* pass.c: a back end's run(). */
int stk_cpu_run(struct stk_program *program, const struct stk_arenas *arenas,
                const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error);

#endif
