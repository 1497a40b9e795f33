/* math.h - what convolutions and linear layers on a GPU are created with and run on.
 *
 *   math: device, libraries, type, rules ──▶ create (one layer, direction, count) ──▶ workspace bytes
 *                                                        │
 *                      operands in device memory ──▶ run ┘   any number of times, also while the
 *                                                            stream is captured
 *
 * create does all that takes time or memory: choosing and timing engines, descriptors. run only
 * enqueues: it neither allocates nor waits, and keeps no pointer.
 *
 * An object is for one count of samples. A smaller last batch gets its own objects, created before
 * anything is captured. Padding the batch would not do: convolutions would read rows that do not
 * exist, and 0 times a stale value may be NaN.
 *
 * T is the storage type: float32, float16 or bfloat16. Sums are float32. Gradients of parameters
 * are float32 for every T and are ADDED to, unless a run is to overwrite them; everything else is
 * overwritten. */
#ifndef STK_TRAINER_BACKEND_CUDA_DEVICE_MATH_H
#define STK_TRAINER_BACKEND_CUDA_DEVICE_MATH_H

#include "kernels/train/train.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/cuda/engine/cache.h"
#include "trainer/backend/cuda/engine/choice.h"
#include "trainer/model/model.h"
#include <stoker/tensor.h>

struct stk_cudnn;
struct stk_cublaslt;

/* Borrowed by all objects created with it. */
struct stk_cuda_math {
    struct stk_backend *backend;   /* its device, stream and kernels */
    struct stk_cudnn *cudnn;       /* NULL = no convolutions */
    struct stk_cublaslt *cublaslt; /* NULL = no linear layers */
    stoker_dtype dtype;            /* T */
    struct stk_engine_rules rules; /* workspace, deterministic, full_float32 (no TF32), benchmark */
    bool tries;                    /* an engine runs once before it is taken */
    struct stk_engine_cache *cache; /* engines that ran, and that did not; NULL = none is kept */
};

/* Enqueues work on the back end's stream. */
typedef int stk_cuda_enqueue(void *work, stoker_error *error);

/* Run the work once and wait. STOKER_ENOTSUP: it failed, and the device is as good as before, so
 * that another engine may run; STOKER_EDEVICE: the device is lost. */
int stk_cuda_run_once(struct stk_backend *backend, stk_cuda_enqueue *enqueue, void *work,
                      stoker_error *error);
/* *seconds = time of one run on the device: the median of a few, after a warm-up. Same errors. */
int stk_cuda_time_runs(struct stk_backend *backend, stk_cuda_enqueue *enqueue, void *work,
                       double *seconds, stoker_error *error);

enum stk_cuda_direction { STK_CUDA_FORWARD, STK_CUDA_BACKWARD_DATA, STK_CUDA_BACKWARD_WEIGHTS };

/* The operands of one run: device memory, 16-byte aligned. Unused ones may be NULL. Images are
 * [count][h][w][c]; model.h has the layout of weights. */
struct stk_cuda_operands {
    const void *x;      /* T: FORWARD, BACKWARD_WEIGHTS */
    const void *weight; /* T: FORWARD, BACKWARD_DATA */
    const void *bias;   /* T: FORWARD; NULL if the layer has none */
    void *y;            /* T: FORWARD; after max(., 0) if the object has relu */
    const void *dy;     /* T: BACKWARD_* */
    void *dx;           /* T: BACKWARD_DATA; not dy */
    float *weight_grad; /* BACKWARD_WEIGHTS */
    float *bias_grad;   /* BACKWARD_WEIGHTS; NULL = not to be computed */
    bool write;         /* BACKWARD_WEIGHTS: overwrite both gradients */
    void *workspace;    /* the object's workspace, 256-byte aligned; NULL if that has 0 bytes */
    /* BACKWARD_WEIGHTS with bias: stk_cuda_tickets() words, 0 before and after each run, so that
     * all runs of one stream may share them. */
    uint32_t *tickets;
};

/* Words of tickets for a layer with `outputs` filters or features. */
static inline uint64_t stk_cuda_tickets(uint32_t outputs)
{
    return ((uint64_t)outputs + 31) / 32;
}

#endif
