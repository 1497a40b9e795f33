/* step.c - see step.h. */
#include "bench/loaderbench/device/step.h"
#include "bench/loaderbench/device/spin.h"
#include "loader/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <stoker/cuda.h>
#include <string.h>

enum { ALIGN = 256 };

static size_t align(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t tensor_bytes(const stoker_tensor *tensor)
{
    size_t bytes = stoker_dtype_bytes(tensor->dtype);
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= (size_t)tensor->shape[axis];
    return bytes;
}

size_t bench_image_bytes(const stoker_batch *batch)
{
    return tensor_bytes(&batch->images);
}

static size_t label_bytes(const stoker_batch *batch)
{
    return batch->labels.data == NULL ? 0 : tensor_bytes(&batch->labels);
}

/* ---- making ---- */

static int load_kernel(struct bench_gpu_step *step, char why[BENCH_GPU_WHY_BYTES])
{
    size_t bytes;
    const void *image = bench_spin_fatbin(&bytes);
    if (image == NULL) {
        snprintf(why, BENCH_GPU_WHY_BYTES,
                 "--step-us on a GPU is a kernel, and loaderbench was built without nvcc");
        return STOKER_EDEVICE;
    }
    int rc = bench_gpu_kernel(step->gpu, image, BENCH_SPIN_NAME, &step->kernel);
    if (rc == STOKER_OK)
        step->sum = bench_gpu_alloc(step->gpu, sizeof(*step->sum));
    if (step->sum == NULL) {
        snprintf(why, BENCH_GPU_WHY_BYTES, "%s", bench_gpu_failure(step->gpu));
        return STOKER_EDEVICE;
    }
    return STOKER_OK;
}

int bench_gpu_step_create(struct bench_gpu_step *out, struct bench_gpu *gpu, uint64_t step_ns,
                          char why[BENCH_GPU_WHY_BYTES])
{
    struct bench_gpu_step step = { .gpu = gpu, .step_ns = step_ns };
    int rc = step_ns > 0 ? load_kernel(&step, why) : STOKER_OK;
    if (rc == STOKER_OK)
        *out = step;
    else
        bench_gpu_step_destroy(&step);
    return rc;
}

void bench_gpu_step_destroy(struct bench_gpu_step *step)
{
    if (step->gpu == NULL)
        return;
    (void)bench_gpu_finish(step->gpu);
    bench_gpu_free(step->gpu, step->sum);
    bench_gpu_free(step->gpu, step->landing);
    free(step->fetched);
    *step = (struct bench_gpu_step){ .gpu = NULL };
}

/* ---- a batch ---- */

static bool is_on_gpu(const stoker_batch *batch)
{
    return batch->device == STOKER_DEVICE_CUDA;
}

/* Copies images, then labels, into the step's own memory on the GPU. */
static int copy_there(struct bench_gpu_step *step, const stoker_batch *batch)
{
    const size_t images = bench_image_bytes(batch), labels = label_bytes(batch);
    const size_t wanted = align(images) + labels;
    if (wanted > step->landing_bytes) {
        int rc = bench_gpu_finish(step->gpu);
        bench_gpu_free(step->gpu, step->landing);
        step->landing = rc == STOKER_OK ? bench_gpu_alloc(step->gpu, wanted) : NULL;
        step->landing_bytes = step->landing == NULL ? 0 : wanted;
        if (step->landing == NULL)
            return STOKER_EDEVICE;
    }
    int rc = bench_gpu_copy_to(step->gpu, step->landing, batch->images.data, images);
    if (rc == STOKER_OK && labels > 0)
        rc = bench_gpu_copy_to(step->gpu, (char *)step->landing + align(images), batch->labels.data,
                               labels);
    return rc;
}

static int launch(struct bench_gpu_step *step, const stoker_batch *batch)
{
    const struct bench_spin spin = { .images =
                                         is_on_gpu(batch) ? batch->images.data : step->landing,
                                     .image_bytes = bench_image_bytes(batch),
                                     .sum = step->sum,
                                     .spin_ns = step->step_ns };
    return bench_gpu_launch(step->gpu, step->kernel, BENCH_SPIN_THREADS, &spin);
}

int bench_gpu_step_begin(struct bench_gpu_step *step, const stoker_batch *batch)
{
    if (batch->count == 0)
        return STOKER_OK;
    int rc = is_on_gpu(batch) ? stoker_batch_wait_on(batch, bench_gpu_stream(step->gpu))
                              : copy_there(step, batch);
    return rc == STOKER_OK && step->kernel != NULL ? launch(step, batch) : rc;
}

static int grow_fetched(struct bench_gpu_step *step, size_t bytes)
{
    if (bytes <= step->fetched_bytes)
        return STOKER_OK;
    void *memory = realloc(step->fetched, bytes);
    if (memory == NULL)
        return STOKER_ENOMEM;
    step->fetched = memory;
    step->fetched_bytes = bytes;
    return STOKER_OK;
}

int bench_gpu_step_fetch(struct bench_gpu_step *step, const stoker_batch *batch, stoker_batch *out)
{
    const size_t images = bench_image_bytes(batch), labels = label_bytes(batch);
    const size_t ids = batch->count * sizeof(batch->ids[0]);
    const char *there = step->landing;
    const void *labels_there =
        is_on_gpu(batch) ? batch->labels.data : (const void *)(there + align(images));
    *out = *batch;
    if (batch->count == 0)
        return STOKER_OK;
    int rc = grow_fetched(step, align(images) + align(labels) + ids);
    if (rc != STOKER_OK)
        return rc;
    char *here = step->fetched;
    out->images.data = here;
    rc =
        bench_gpu_copy_from(step->gpu, here, is_on_gpu(batch) ? batch->images.data : there, images);
    if (rc == STOKER_OK && labels > 0) {
        out->labels.data = here + align(images);
        rc = bench_gpu_copy_from(step->gpu, out->labels.data, labels_there, labels);
    }
    if (rc == STOKER_OK && is_on_gpu(batch)) { /* those on the GPU are what a kernel would use */
        out->ids = (const uint64_t *)(const void *)(here + align(images) + align(labels));
        rc = bench_gpu_copy_from(step->gpu, here + align(images) + align(labels), batch->device_ids,
                                 ids);
    }
    if (rc == STOKER_OK)
        rc = bench_gpu_finish(step->gpu);
    if (rc == STOKER_OK && memcmp(out->ids, batch->ids, ids) != 0)
        rc = STOKER_ECORRUPT;
    return rc;
}

int bench_gpu_step_alone(struct bench_gpu_step *step, const stoker_batch *batch, double seconds,
                         double *steps_per_s)
{
    enum { GROUP = 16 };
    int rc = bench_gpu_finish(step->gpu);
    const uint64_t begin_ns = stk_now_ns();
    uint64_t spent_ns = 0, steps = 0;
    for (uint32_t turn = 0; rc == STOKER_OK && (double)spent_ns < seconds * 1e9; turn++) {
        for (int i = 0; rc == STOKER_OK && i < GROUP; i++)
            rc = launch(step, batch);
        if (rc == STOKER_OK)
            rc = bench_gpu_mark(step->gpu, turn % BENCH_GPU_EVENTS);
        if (rc == STOKER_OK) /* for the previous group: keeps the queue short, but never empty */
            rc = bench_gpu_wait(step->gpu, (turn + 1) % BENCH_GPU_EVENTS);
        steps += GROUP;
        spent_ns = stk_now_ns() - begin_ns;
    }
    if (rc == STOKER_OK)
        rc = bench_gpu_finish(step->gpu);
    *steps_per_s = (double)steps * 1e9 / (double)(stk_now_ns() - begin_ns);
    return rc;
}
