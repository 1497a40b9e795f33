/* step.h - the consumer's work on a batch on a GPU.
 *
 *   --device cuda        stream: wait for the copy ─▶ [ step ] ─▶ released
 *   --device cuda-host   stream: copy the batch    ─▶ [ step ]    the host waits, then releases
 *
 * The step is a kernel of known length (spin.h), launched if --step-us asks for it. The host
 * continues with the next batch at once, as a training program does.
 */
#ifndef BENCH_DEVICE_STEP_H
#define BENCH_DEVICE_STEP_H

#include "bench/loaderbench/device/gpu.h"

#include <stdint.h>
#include <stoker/stoker.h>

struct bench_gpu_step {
    struct bench_gpu *gpu;
    void *kernel;  /* NULL = no step */
    uint64_t *sum; /* on the GPU */
    uint64_t step_ns;
    void *landing; /* on the GPU: copy of a batch that lies in host memory */
    size_t landing_bytes;
    void *fetched; /* on the host: a batch copied back for checking */
    size_t fetched_bytes;
};

/* step_ns 0 = no kernel. STOKER_ENOMEM, STOKER_EDEVICE and `why`. */
int bench_gpu_step_create(struct bench_gpu_step *out, struct bench_gpu *gpu, uint64_t step_ns,
                          char why[BENCH_GPU_WHY_BYTES]);
void bench_gpu_step_destroy(struct bench_gpu_step *step);

/* Puts the work on the batch on the stream. */
int bench_gpu_step_begin(struct bench_gpu_step *step, const stoker_batch *batch);
/* Copies the batch from the GPU to host memory and waits. *out is valid until the next call. */
int bench_gpu_step_fetch(struct bench_gpu_step *step, const stoker_batch *batch, stoker_batch *out);

/* Steps per second of the kernel alone on one batch, run for `seconds`: no loader can beat that. */
int bench_gpu_step_alone(struct bench_gpu_step *step, const stoker_batch *batch, double seconds,
                         double *steps_per_s);

/* Size of the images in bytes. */
size_t bench_image_bytes(const stoker_batch *batch);

#endif
