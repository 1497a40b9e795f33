/* math.h - what convolutions and linear layers on a GPU are made with and run with.
 *
 *   math: device, libraries, type, rules ──▶ create (one layer, direction, count) ──▶ workspace bytes
 *                                                        │
 *              stream, operands in device memory ──▶ run ┘   as often as wanted; also while a stream
 *                                                            is captured
 *
 * All that takes time or memory is done by create: choosing engines, timing them, descriptors. run only
 * enqueues: it allocates nothing, waits for nothing, and holds no pointer when it returns.
 *
 * An object is made for one count of samples. A smaller last batch has objects of its own, which are
 * made when it is first wanted, before anything is captured: padding the batch would give convolutions
 * rows to read that are not there, and 0 x whatever lies in a stale row need not be 0. Their
 * workspace keeps to what the full batch was given if workspace_bytes_max says so.
 *
 * T is the storage type: float32, float16 or bfloat16. Sums are float32. Gradients of parameters are
 * float32 whatever T is, and are ADDED to; all else is written.
 *
 * This knows no CUDA header: the back end hands in what it has of the runtime. */
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

/* Something that can be enqueued, to be timed. */
typedef int stk_cuda_enqueue(void *work, void *stream, stoker_error *error);

/* The device, as the back end sees it. Functions return 0 or an error. */
struct stk_cuda_device {
    void *context;
    /* Enqueue one of stk_train_kernels with its struct; grid as kernel->grid() says. */
    int (*launch)(void *context, const struct stk_kernel *kernel, const void *arguments,
                  void *stream, stoker_error *error);
    /* For create alone, and only where rules.benchmark > 0; else they may be NULL.
     * Device memory, 256-byte aligned, zeroed; NULL = none left. */
    void *(*allocate)(void *context, uint64_t bytes);
    void (*release)(void *context, void *memory);
    /* Seconds of one run on the device: warm up, then the median of a few. */
    int (*time)(void *context, stk_cuda_enqueue *enqueue, void *work, double *seconds,
                stoker_error *error);
};

/* Borrowed by everything that is made with it. */
struct stk_cuda_math {
    struct stk_cuda_device device;
    struct stk_cudnn *cudnn;       /* NULL = no convolutions */
    struct stk_cublaslt *cublaslt; /* NULL = no linear layers */
    stoker_dtype dtype;            /* T */
    struct stk_engine_rules rules; /* workspace, deterministic, full_float32 (no TF32), benchmark */
    struct stk_engine_cache *cache; /* of this back end, with benchmark > 0; NULL = none */
};

enum stk_cuda_direction { STK_CUDA_FORWARD, STK_CUDA_BACKWARD_DATA, STK_CUDA_BACKWARD_WEIGHTS };

/* Where one run's operands lie: device memory, each at a multiple of 16 bytes. What a direction does
 * not use may be NULL. Images are [count][h][w][c]; weights as model.h has them. */
struct stk_cuda_operands {
    const void *x;      /* T: FORWARD, BACKWARD_WEIGHTS */
    const void *weight; /* T: FORWARD, BACKWARD_DATA */
    const void *bias;   /* T: FORWARD; NULL if the layer has none */
    void *y;            /* T: FORWARD; then max(., 0) if the object was made so */
    const void *dy;     /* T: BACKWARD_* */
    void *dx;           /* T: BACKWARD_DATA; may not be dy */
    float *weight_grad; /* BACKWARD_WEIGHTS */
    float *bias_grad;   /* BACKWARD_WEIGHTS; NULL if the layer has none */
    void *workspace;    /* as many bytes as the object asks for, at a multiple of 256; NULL if 0 */
    uint32_t *tickets; /* BACKWARD_WEIGHTS with bias: stk_cuda_tickets() words that are 0, and are 0
                           again after the run: all runs of one stream may share them */
};

/* Words of tickets that a layer of so many outputs (filters, features) takes. */
static inline uint64_t stk_cuda_tickets(uint32_t outputs)
{
    return ((uint64_t)outputs + 31) / 32;
}

#endif
