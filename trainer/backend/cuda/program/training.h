/* training.h - the training state on the device, and the update: functions of stk_device_ops. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_TRAINING_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_TRAINING_H

#include "trainer/backend/backend.h"

int stk_cuda_training_bytes(struct stk_backend *backend, const struct stk_training *training,
                            uint64_t *out, stoker_error *error);
int stk_cuda_training_start(struct stk_backend *backend, const struct stk_training *training,
                            stoker_error *error);
int stk_cuda_training_upload_state(struct stk_backend *backend,
                                   const struct stk_update_state *state, stoker_error *error);
int stk_cuda_training_read_state(struct stk_backend *backend, struct stk_update_state *state,
                                 struct stk_step_metrics *metrics, stoker_error *error);
int stk_cuda_training_collect_loss(struct stk_backend *backend, struct stk_loss *loss,
                                   uint64_t *bad_labels, stoker_error *error);
int stk_cuda_training_queue_norm(struct stk_backend *backend, const struct stk_update *update,
                                 stoker_error *error);
/* Queue norm, factors and update. The device must be current. */
int stk_cuda_training_update(struct stk_backend *backend, const struct stk_update *update,
                             uint64_t samples, stoker_error *error);
/* Queue half_weights = parameters, rounded. */
int stk_cuda_training_narrow(struct stk_backend *backend, void *half_weights,
                             const float *parameters, uint64_t count, stoker_dtype storage,
                             stoker_error *error);
int stk_cuda_training_queue_update(struct stk_backend *backend, const struct stk_update *update,
                                   uint64_t samples, stoker_error *error);

#endif
