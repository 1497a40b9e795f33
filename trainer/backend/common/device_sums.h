/* device_sums.h - sums over the ranks of a run, of arrays in the memory of each rank's GPU.
 *
 *   peers         words: sync points, errors, failed ranks               host memory
 *   device sums   gradients, statistics, weights: queued on a stream  device memory        peers/nccl/nccl.h
 *
 * Every rank queues the same calls in the same order, on one stream; what it captures as a graph,
 * all do. After a failure every call returns the first error, and what was queued on the stream
 * ends, with undefined results. The thread that has joined calls, and the same device is current.
 */
#ifndef STK_TRAINER_BACKEND_COMMON_DEVICE_SUMS_H
#define STK_TRAINER_BACKEND_COMMON_DEVICE_SUMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/tensor.h>

struct stk_backend;
struct stk_device_sums;

struct stk_device_sums_ops {
    const char *name;
    /* Queue the sum over all ranks, in place. dtype: FLOAT32 or FLOAT64. STOKER_EPEER. */
    int (*all_reduce)(struct stk_device_sums *sums, void *numbers, uint64_t count,
                      stoker_dtype dtype, void *stream, stoker_error *error);
    /* Queue: piece r of `to` becomes the `count` floats at rank r's `from`. STOKER_EPEER. */
    int (*all_gather)(struct stk_device_sums *sums, const float *from, float *to, uint64_t count,
                      void *stream, stoker_error *error);
    /* Queue: everybody's bytes become rank 0's. STOKER_EPEER. */
    int (*broadcast)(struct stk_device_sums *sums, void *memory, uint64_t bytes, void *stream,
                     stoker_error *error);
    /* One look while the host waits for what was queued: finds ranks that have failed, and ends a
     * wait that began waited_ns ago and takes too long. STOKER_EPEER. */
    int (*poll)(struct stk_device_sums *sums, uint64_t waited_ns, stoker_error *error);
    /* A sync point: *all_captured becomes true if every rank's `captured` is. why: the reason if
     * this rank's is not; of another rank's it is written. STOKER_EPEER. */
    int (*agree_capture)(struct stk_device_sums *sums, bool captured, bool *all_captured,
                         stoker_error *why, stoker_error *error);
};

/* The head of each kind. */
struct stk_device_sums {
    const struct stk_device_sums_ops *ops;
    uint32_t rank, ranks;
    /* Set while calls are captured: one that is refused for that alone ends the capture, not the
     * run. */
    bool capturing;
    /* Destroys what was captured with sums in it. A failure calls it before it ends what is queued:
     * NCCL ends only once no graph holds an operation of it. NULL = nothing is ever captured. */
    void (*drop_captured)(struct stk_backend *owner);
    struct stk_backend *owner;
};

/* A number that no other GPU has, here or elsewhere. */
enum { STK_DEVICE_ID_BYTES = 16 };
struct stk_device_id {
    uint8_t bytes[STK_DEVICE_ID_BYTES];
};

#endif
