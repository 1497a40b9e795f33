/* ranks.h - one GPU of several that train together: what its stream sums with the others'.
 *
 *   stream         backward ─ op 7 ─┬─ op 8 ─ op 9 ─┬─ ... ─ statistics ─┬─ norm ─ update
 *                                event           event                 event
 *   second stream                   └─ sum of slice 0 ─┴─ sum of slice 1 ─ ┘
 *
 * All sums are queued on the second stream, in one order on all ranks; events tie it to the
 * first, also while both are captured. The device must be current. */
#ifndef STK_TRAINER_BACKEND_CUDA_RANKS_H
#define STK_TRAINER_BACKEND_CUDA_RANKS_H

#include "trainer/backend/cuda/device/device.h"
#include "trainer/plan/slices.h"

struct stk_cuda_ranks {
    bool sync_batch_norm;
    bool dropped; /* graphs were destroyed here since the ranks last agreed on them */
    cudaEvent_t forked, joined;
    bool behind; /* the first stream has not waited for all that is queued on the second */

    /* On the device. `statistics` is as the arena of statistics. */
    uint64_t statistic_floats;
    const float *statistics; /* the arena, of the pass under way */
    /* The statistics of this rank's batch, and [ranks][statistic_floats] of all; with
     * sync_batch_norm `found` is what the running statistics were when the pass began. */
    float *found, *gathered;
    float *momenta; /* one for each statistic */
    double *sums_of_layer;
};

/* For stk_device_ops.join. */
int stk_cuda_ranks_join(struct stk_backend *backend, struct stk_device_sums *sums,
                        const stoker_model *model, bool sync_batch_norm, stoker_error *error);
void stk_cuda_ranks_close(struct stk_backend *backend); /* after a drain */

/* Queue the sum over all ranks of what the stream has computed so far. The results are there for
 * what is queued after stk_cuda_ranks_wait(). */
int stk_cuda_ranks_sum(struct stk_backend *backend, void *numbers, uint64_t count,
                       stoker_dtype dtype, stoker_error *error);
int stk_cuda_ranks_wait(struct stk_backend *backend, stoker_error *error);

/* Queue what a pass begins and ends with, beside its operations: statistics is the arena. */
int stk_cuda_ranks_begin_pass(struct stk_backend *backend, const float *statistics, uint32_t count,
                              stoker_error *error);
int stk_cuda_ranks_end_pass(struct stk_backend *backend, float *statistics, stoker_error *error);

/* stk_device_ops.sum and .broadcast. */
int stk_cuda_ranks_sum_floats(struct stk_backend *backend, float *floats, uint64_t count,
                              stoker_error *error);
int stk_cuda_ranks_broadcast(struct stk_backend *backend, void *memory, uint64_t bytes,
                             stoker_error *error);

#endif
