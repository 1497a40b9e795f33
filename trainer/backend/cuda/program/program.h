/* program.h - a plan prepared for a GPU, and run: functions of stk_backend_ops and
 * stk_device_ops. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_PROGRAM_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_PROGRAM_H

#include "trainer/backend/backend.h"

int stk_cuda_workspace_bytes(struct stk_backend *backend, const struct stk_plan *plan,
                             uint64_t *out, stoker_error *error);
int stk_cuda_program_load(struct stk_program **out, struct stk_backend *backend,
                          const struct stk_plan *plan, stoker_error *error);
void stk_cuda_program_unload(struct stk_program *program);
int stk_cuda_program_warm(struct stk_program *program, const struct stk_arenas *arenas,
                          uint32_t count, stoker_error *error);
uint64_t stk_cuda_program_trim(struct stk_program *program);
int stk_cuda_program_run(struct stk_program *program, const struct stk_arenas *arenas,
                         const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error);
int stk_cuda_program_queue_forward(struct stk_program *program, const struct stk_arenas *arenas,
                                   const struct stk_pass *pass, stoker_error *error);
int stk_cuda_program_prepare_step(struct stk_program *program, uint32_t count, bool *forgets,
                                  stoker_error *error);
int stk_cuda_program_queue_step(struct stk_program *program, const struct stk_arenas *arenas,
                                const struct stk_pass *pass, const struct stk_group_pass *group,
                                stoker_error *error);

#endif
