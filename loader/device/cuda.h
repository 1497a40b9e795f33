/* cuda.h - a GPU as a device: what the files cuda*.c share.
 *
 *   cuda.c            open, close, the tables of functions
 *   cuda_current.c    errors, the caller's current device
 *   cuda_memory.c     memory of the GPU, page-locked host memory
 *   cuda_streams.c    the streams for copies and kernels
 *   cuda_send.c       copies and kernels of a batch
 *   cuda_events.c     events, and the host waiting for them
 *   cuda_consumer.c   streams of the consumer
 */
#ifndef STK_DEVICE_CUDA_H
#define STK_DEVICE_CUDA_H

#include "loader/base/cuda/cuda_card.h"
#include "loader/base/cuda/cuda_context.h"
#include "loader/device/device.h"

struct stk_gpu {
    struct stk_device device; /* first: the part that others see */
    struct stk_cuda_runtime runtime;
    struct stk_cuda_card card;
    struct stk_cuda_context context;
    cudaStream_t copies;   /* in order; NULL = not made */
    cudaStream_t kernels;  /* in order; NULL = none was loaded */
    cudaEvent_t probe;     /* marked on the consumer's streams to learn if they are this GPU's */
    cudaLibrary_t library; /* NULL = no kernels loaded */
};

static inline struct stk_gpu *stk_gpu_of(struct stk_device *device)
{
    return (struct stk_gpu *)device;
}

/* The error in words. It is removed from cudaGetLastError: the program would take it for its
 * own. */
const char *stk_gpu_words(const struct stk_cuda_runtime *runtime, cudaError_t code);

/* 0, or the device has failed. */
int stk_gpu_check(struct stk_gpu *gpu, cudaError_t code, const char *what);
/* Like stk_gpu_check(), but the device stays usable: returns 0, or STOKER_EDEVICE with the reason
 * in `why`. */
int stk_gpu_explain(const struct stk_gpu *gpu, cudaError_t code, const char *what,
                    char why[STK_DEVICE_WHY_BYTES]);

/* What a thread had before a call. */
struct stk_gpu_before {
    int device;
    enum cudaStreamCaptureMode mode;
};

/* Make the GPU current in this thread; leave restores what the caller had. Between them the thread
 * does not count where another records a graph in CUDA's default mode: it would be refused every
 * call that may wait or allocate, and end the recording. 0, or the device has failed. leave only
 * after enter returned 0. */
int stk_gpu_enter(struct stk_gpu *gpu, struct stk_gpu_before *before);
/* Like stk_gpu_enter(), but the device stays usable, and `why` receives the reason. */
int stk_gpu_enter_or_explain(struct stk_gpu *gpu, struct stk_gpu_before *before,
                             char why[STK_DEVICE_WHY_BYTES]);
void stk_gpu_leave(struct stk_gpu *gpu, struct stk_gpu_before before);

int stk_gpu_record(struct stk_gpu *gpu, cudaEvent_t event, cudaStream_t stream);
int stk_gpu_launch(struct stk_gpu *gpu, const struct stk_device_launch *launch,
                   cudaStream_t stream);

/* The copies' stream and the probe: 0, or STOKER_EDEVICE with the reason in `why`. The kernels'
 * stream: *what names the call that failed; the GPU must be current. */
int stk_gpu_make_streams(struct stk_gpu *gpu, char why[STK_DEVICE_WHY_BYTES]);
cudaError_t stk_gpu_make_kernel_stream(struct stk_gpu *gpu, const char **what);
/* Destroy those that were made. The GPU should be current. */
void stk_gpu_destroy_streams(struct stk_gpu *gpu);

/* The functions of stk_device_ops. */
int stk_gpu_pin(struct stk_device *device, struct stk_region *region,
                char why[STK_DEVICE_WHY_BYTES]);
void stk_gpu_unpin(struct stk_device *device, struct stk_region *region);
void *stk_gpu_alloc(struct stk_device *device, size_t bytes, char why[STK_DEVICE_WHY_BYTES]);
void stk_gpu_free(struct stk_device *device, void *memory);
int stk_gpu_available(struct stk_device *device, uint64_t *bytes, char why[STK_DEVICE_WHY_BYTES]);
void *stk_gpu_event_create(struct stk_device *device, char why[STK_DEVICE_WHY_BYTES]);
void stk_gpu_event_destroy(struct stk_device *device, void *event);
int stk_gpu_load(struct stk_device *device, const struct stk_device_image *image, const char *name,
                 void **kernel, char why[STK_DEVICE_WHY_BYTES]);
int stk_gpu_send(struct stk_device *device, const struct stk_send *send);
int stk_gpu_wait_on(struct stk_device *device, void *event, void *stream,
                    char why[STK_DEVICE_WHY_BYTES]);
int stk_gpu_mark_on(struct stk_device *device, void *event, void *stream,
                    char why[STK_DEVICE_WHY_BYTES]);
int stk_gpu_finish(struct stk_device *device, void *stream, char why[STK_DEVICE_WHY_BYTES]);
int stk_gpu_done(struct stk_device *device, void *event);
int stk_gpu_wait(struct stk_device *device, void *event, uint64_t deadline_ns, bool spare_core);
bool stk_gpu_drain(struct stk_device *device, uint64_t deadline_ns);

#endif
