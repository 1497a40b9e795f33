/* step.h - what the consumer does with a batch on a GPU.
 *
 *   --device cuda        stream: wait for the copy ─▶ [ step ] ─▶ released
 *   --device cuda-host   stream: copy it myself    ─▶ [ step ]    the host waits, then releases
 *
 * The step is a kernel of known length (spin.h), launched where --step-us asks for one. The host
 * goes on to the next batch at once, as a training program does.
 */
#ifndef BENCH_DEVICE_STEP_H
#define BENCH_DEVICE_STEP_H

#include "bench/device/gpu.h"

#include <stdint.h>
#include <stoker/stoker.h>

struct bench_gpu_step {
    struct bench_gpu *gpu;
    void *kernel;  /* NULL = no step */
    uint64_t *sum; /* of the GPU */
    uint64_t step_ns;
    void *landing; /* of the GPU: where a batch is copied that lies in host memory */
    size_t landing_bytes;
    void *fetched; /* of the host: a batch brought back to be checked */
    size_t fetched_bytes;
};

/* step_ns 0 = no kernel. STOKER_ENOMEM, STOKER_EDEVICE and `why`. */
int bench_gpu_step_create(struct bench_gpu_step *out, struct bench_gpu *gpu, uint64_t step_ns,
                          char why[BENCH_GPU_WHY_BYTES]);
void bench_gpu_step_destroy(struct bench_gpu_step *step);

/* Put the batch's work on the stream. */
int bench_gpu_step_begin(struct bench_gpu_step *step, const stoker_batch *batch);
/* The batch as it lies on the GPU now, brought to host memory: waits. *out is good until the next call. */
int bench_gpu_step_fetch(struct bench_gpu_step *step, const stoker_batch *batch, stoker_batch *out);

/* Steps per second of the kernel alone on a batch, for so long: what no loader can beat. */
int bench_gpu_step_alone(struct bench_gpu_step *step, const stoker_batch *batch, double seconds,
                         double *steps_per_s);

/* Bytes of the images. */
size_t bench_image_bytes(const stoker_batch *batch);

#endif
