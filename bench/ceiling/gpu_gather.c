/* gpu_gather.c - batches from a data set in GPU memory: back-to-back launches of a kernel of loaderbench's own that gathers rows
 * by number and scales them (bench/device/gather.h). Nothing crosses the bus. What the first launch wrote is compared with
 * the same made by the CPU.
 */
#include "bench/ceiling/ceiling.h"
#include "bench/device/gather.h"
#include "bench/device/gpu.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 16, BUFFERS = 4 };

struct gatherer {
    const struct bench_work *work;
    struct bench_gpu *gpu;
    void *kernel;
    struct bench_gather launch; /* rows and out on the GPU */
    size_t element_bytes;
    uint64_t *numbers; /* on the GPU, in visiting order */
    uint8_t *out;      /* on the GPU: [BUFFERS] batches */
    uint64_t next;     /* place in the order */
    uint64_t batches;
    uint32_t turn;
};

static void teardown(void *state)
{
    struct gatherer *gatherer = state;
    if (gatherer->gpu != NULL) {
        (void)bench_gpu_finish(gatherer->gpu);
        bench_gpu_free(gatherer->gpu, (void *)gatherer->launch.rows);
        bench_gpu_free(gatherer->gpu, gatherer->numbers);
        bench_gpu_free(gatherer->gpu, gatherer->out);
    }
    bench_gpu_close(&gatherer->gpu);
    free(gatherer);
}

/* The numbers of the rows in visiting order, whose end repeats its start; NULL = no memory. */
static uint64_t *numbers_of(const struct bench_material *material, uint64_t count)
{
    uint64_t *numbers = calloc(count, sizeof(*numbers));
    for (uint64_t i = 0; numbers != NULL && i < count; i++)
        numbers[i] = (uint64_t)((const char *)material->order[i % material->count] -
                                (const char *)material->rows.bytes) /
                     material->row_bytes;
    return numbers;
}

static int send(struct gatherer *gatherer, const uint64_t *numbers, uint64_t count)
{
    const struct bench_work *work = gatherer->work;
    const size_t rows_bytes = work->material->count * work->material->row_bytes;
    uint8_t *rows = bench_gpu_alloc(gatherer->gpu, rows_bytes);
    gatherer->launch.rows = rows;
    gatherer->numbers = bench_gpu_alloc(gatherer->gpu, count * sizeof(*numbers));
    gatherer->out =
        bench_gpu_alloc(gatherer->gpu, BUFFERS * work->batch_size * work->plan->to_bytes);
    if (rows == NULL || gatherer->numbers == NULL || gatherer->out == NULL)
        return STOKER_ENOTSUP; /* it does not fit */
    int rc = bench_gpu_copy_to(gatherer->gpu, rows, work->material->rows.bytes, rows_bytes);
    if (rc == STOKER_OK)
        rc = bench_gpu_copy_to(gatherer->gpu, gatherer->numbers, numbers, count * sizeof(*numbers));
    return rc == STOKER_OK ? bench_gpu_finish(gatherer->gpu) : rc;
}

static int launch_one(struct gatherer *gatherer)
{
    const struct bench_work *work = gatherer->work;
    struct bench_gather *launch = &gatherer->launch;
    const uint32_t rows = BENCH_GATHER_THREADS / BENCH_GATHER_LANES;
    const uint64_t parts =
        (work->plan->to_bytes + BENCH_GATHER_PART_BYTES - 1) / BENCH_GATHER_PART_BYTES;
    launch->numbers = gatherer->numbers + gatherer->next;
    launch->out =
        gatherer->out + gatherer->batches++ % BUFFERS * work->batch_size * work->plan->to_bytes;
    gatherer->next = (gatherer->next + work->batch_size) % work->material->count;
    return bench_gpu_launch(gatherer->gpu, gatherer->kernel, (launch->count + rows - 1) / rows,
                            (uint32_t)parts, BENCH_GATHER_THREADS, launch);
}

/* Launches one batch and compares it with the host's. */
static int try_one(struct gatherer *gatherer, const uint64_t *numbers)
{
    const struct bench_work *work = gatherer->work;
    const size_t bytes = work->batch_size * work->plan->to_bytes;
    uint8_t *expected = malloc(bytes), *made = malloc(bytes);
    struct bench_gather on_host = gatherer->launch;
    int rc = expected == NULL || made == NULL ? STOKER_ENOMEM : launch_one(gatherer);
    if (rc == STOKER_OK)
        rc = bench_gpu_copy_from(gatherer->gpu, made, gatherer->launch.out, bytes);
    if (rc == STOKER_OK)
        rc = bench_gpu_finish(gatherer->gpu);
    if (rc == STOKER_OK) {
        on_host.rows = (const uint8_t *)work->material->rows.bytes;
        on_host.numbers = numbers;
        on_host.out = expected;
        bench_gather_on_host(&on_host, gatherer->element_bytes);
        rc = memcmp(expected, made, bytes) == 0 ? STOKER_OK : STOKER_EDEVICE;
    }
    free(expected);
    free(made);
    return rc;
}

static int make(struct gatherer *gatherer)
{
    const struct bench_work *work = gatherer->work;
    const uint64_t count = work->material->count + work->batch_size;
    char why[BENCH_GPU_WHY_BYTES];
    size_t bytes;
    const void *image = bench_gather_fatbin(&bytes);
    int rc = bench_gpu_open(&gatherer->gpu, work->gpu_index, why);
    if (rc == STOKER_OK)
        rc = bench_gpu_kernel(gatherer->gpu, image, bench_gather_name(gatherer->element_bytes),
                              &gatherer->kernel);
    uint64_t *numbers = rc == STOKER_OK ? numbers_of(work->material, count) : NULL;
    if (rc == STOKER_OK)
        rc = numbers == NULL ? STOKER_ENOMEM : send(gatherer, numbers, count);
    if (rc == STOKER_OK)
        rc = try_one(gatherer, numbers);
    free(numbers);
    return rc;
}

/* Returns true if a kernel makes such rows, in this build. */
static bool fits(const struct stk_convert_plan *plan, size_t *element_bytes)
{
    size_t bytes;
    *element_bytes = plan->to_bytes / plan->elements;
    return plan->from == STOKER_DTYPE_UINT8 &&
           bench_gather_fits(plan->from_bytes, *element_bytes) &&
           bench_gather_fatbin(&bytes) != NULL;
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    size_t element_bytes;
    (void)thread;
    (void)threads;
    if (!fits(work->plan, &element_bytes))
        return STOKER_ENOTSUP;
    struct gatherer *gatherer = calloc(1, sizeof(*gatherer));
    if (gatherer == NULL)
        return STOKER_ENOMEM;
    gatherer->work = work;
    gatherer->element_bytes = element_bytes;
    gatherer->launch = (struct bench_gather){ .row_bytes = work->plan->from_bytes,
                                              .count = work->batch_size,
                                              .factor = work->plan->factor[0],
                                              .bias = work->plan->bias[0] };
    int rc = make(gatherer);
    if (rc == STOKER_OK)
        *state = gatherer;
    else
        teardown(gatherer);
    return rc;
}

static int64_t step(void *state)
{
    struct gatherer *gatherer = state;
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < GROUP; i++)
        rc = launch_one(gatherer);
    if (rc == STOKER_OK)
        rc = bench_gpu_mark(gatherer->gpu, gatherer->turn++ % BENCH_GPU_EVENTS);
    if (rc == STOKER_OK)
        rc = bench_gpu_wait(gatherer->gpu, gatherer->turn % BENCH_GPU_EVENTS);
    return rc == STOKER_OK ? (int64_t)GROUP * gatherer->work->batch_size : rc;
}

const struct bench_steps bench_steps_gather_gpu = { setup, step, teardown };
