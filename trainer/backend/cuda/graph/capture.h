/* capture.h - a step recorded once and launched as one graph. */
#ifndef STK_TRAINER_BACKEND_CUDA_GRAPH_CAPTURE_H
#define STK_TRAINER_BACKEND_CUDA_GRAPH_CAPTURE_H

#include "trainer/backend/cuda/device/device.h"

enum { STK_CUDA_RECORDINGS = 8 };

/* What two steps must have in common to be one graph. */
struct stk_cuda_key {
    const void *activations;
    uint32_t count;
    bool first, last;            /* of its group */
    uint64_t samples;            /* of the group; 0 but in its last pass */
    uint64_t first_sample, seed; /* of dropout; 0 where there is none */
};

struct stk_cuda_recording {
    struct stk_cuda_key key;
    uint64_t used;         /* when it was last asked for; 0 = empty */
    cudaGraphExec_t graph; /* NULL = not recorded */
    bool refused;          /* it cannot be */
};

/* All zero is empty. */
struct stk_cuda_recordings {
    struct stk_cuda_recording recording[STK_CUDA_RECORDINGS];
    uint64_t tick;
};

/* Puts a step on the stream. */
typedef int stk_cuda_queue(void *context, stoker_error *error);

/* Queue a step, from its recording if there is one. The device is current. */
int stk_cuda_recordings_run(struct stk_backend *backend, struct stk_cuda_recordings *recordings,
                            const struct stk_cuda_key *key, stk_cuda_queue *queue, void *context,
                            stoker_error *error);
/* Forget those for so many samples; 0 = all. */
void stk_cuda_recordings_drop(struct stk_backend *backend, struct stk_cuda_recordings *recordings,
                              uint32_t count);

#endif
