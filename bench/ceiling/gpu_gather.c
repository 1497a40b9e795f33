/* gpu_gather.c - batches from a data set in GPU memory: back-to-back launches of the bare kernel that
 * gathers rows by number and converts them. Nothing crosses the bus.
 */
#include "bench/ceiling/ceiling.h"
#include "bench/device/gpu.h"
#include "kernels/transform/launch.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 16, BUFFERS = 4 };

struct gatherer {
    const struct bench_work *work;
    struct bench_gpu *gpu;
    struct stk_transform_plan plan;
    struct stk_crop_launch launch;
    const struct stk_kernel *kernel;
    void *loaded;
    uint8_t *rows; /* on the GPU, as are those below */
    uint64_t *numbers;
    char *out;
    uint64_t next; /* place in the order */
    uint64_t batches;
    uint32_t turn;
};

static void teardown(void *state)
{
    struct gatherer *gatherer = state;
    if (gatherer->gpu != NULL) {
        (void)bench_gpu_finish(gatherer->gpu);
        bench_gpu_free(gatherer->gpu, gatherer->rows);
        bench_gpu_free(gatherer->gpu, gatherer->numbers);
        bench_gpu_free(gatherer->gpu, gatherer->out);
    }
    bench_gpu_close(&gatherer->gpu);
    free(gatherer);
}

/* Plans rows as images of height x width, if the kernels support that. */
static int plan_rows(struct gatherer *gatherer)
{
    static const uint8_t no_fill[STOKER_TRANSFORM_CHANNELS_MAX];
    const struct stk_convert_plan *convert = gatherer->work->plan;
    const stoker_dataset_info *info = stoker_dataset_get_info(gatherer->work->material->dataset);
    const stoker_transform nothing = { .flip = false };
    char why[STK_TRANSFORM_WHY_BYTES];
    struct stk_framing framing;
    if (convert->from != STOKER_DTYPE_UINT8 || !info->is_image || info->rank < 2 ||
        convert->channels > STK_LAUNCH_CHANNELS_MAX)
        return STOKER_ENOTSUP;
    const uint32_t height = (uint32_t)info->shape[0], width = (uint32_t)info->shape[1];
    if (stk_framing_init(&framing, &nothing, 0, height, width, false, why) != 0 ||
        stk_transform_plan_init(&gatherer->plan, &framing, no_fill, convert, convert->channels,
                                height, width) != 0)
        return STOKER_ENOTSUP;
    stk_launch_of(&gatherer->launch, &gatherer->plan, height, width);
    gatherer->kernel = stk_kernel_crop(&gatherer->plan);
    return STOKER_OK;
}

/* Sends the row numbers of the order; its end repeats its start. */
static int send_numbers(struct gatherer *gatherer)
{
    const struct bench_material *material = gatherer->work->material;
    const uint64_t count = material->count + gatherer->work->batch_size;
    uint64_t *numbers = calloc(count, sizeof(*numbers));
    if (numbers == NULL)
        return STOKER_ENOMEM;
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = (uint64_t)((const char *)material->order[i % material->count] -
                                (const char *)material->rows.bytes) /
                     material->row_bytes;
    gatherer->numbers = bench_gpu_alloc(gatherer->gpu, count * sizeof(*numbers));
    int rc = gatherer->numbers == NULL ? STOKER_ENOTSUP
                                       : bench_gpu_copy_to(gatherer->gpu, gatherer->numbers,
                                                           numbers, count * sizeof(*numbers));
    if (rc == STOKER_OK)
        rc = bench_gpu_finish(gatherer->gpu);
    free(numbers);
    return rc;
}

static int send_rows(struct gatherer *gatherer)
{
    const struct bench_work *work = gatherer->work;
    const size_t bytes = work->material->count * work->material->row_bytes;
    gatherer->rows = bench_gpu_alloc(gatherer->gpu, bytes);
    gatherer->out =
        bench_gpu_alloc(gatherer->gpu, BUFFERS * work->batch_size * work->plan->to_bytes);
    if (gatherer->rows == NULL || gatherer->out == NULL)
        return STOKER_ENOTSUP; /* it does not fit */
    return bench_gpu_copy_to(gatherer->gpu, gatherer->rows, work->material->rows.bytes, bytes);
}

static int make(struct gatherer *gatherer)
{
    char why[BENCH_GPU_WHY_BYTES];
    size_t bytes;
    const void *image = stk_kernels_fatbin(&bytes);
    int rc = image == NULL ? STOKER_ENOTSUP : plan_rows(gatherer);
    if (rc == STOKER_OK)
        rc = bench_gpu_open(&gatherer->gpu, gatherer->work->gpu_index, why);
    if (rc == STOKER_OK)
        rc = bench_gpu_kernel(gatherer->gpu, image, gatherer->kernel->name, &gatherer->loaded);
    if (rc == STOKER_OK)
        rc = send_rows(gatherer);
    return rc == STOKER_OK ? send_numbers(gatherer) : rc;
}

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)thread;
    (void)threads;
    struct gatherer *gatherer = calloc(1, sizeof(*gatherer));
    if (gatherer == NULL)
        return STOKER_ENOMEM;
    gatherer->work = context;
    int rc = make(gatherer);
    if (rc == STOKER_OK)
        *state = gatherer;
    else
        teardown(gatherer);
    return rc;
}

static int launch_one(struct gatherer *gatherer)
{
    const struct bench_work *work = gatherer->work;
    struct stk_crop_launch *launch = &gatherer->launch;
    launch->batch.images = gatherer->rows;
    launch->batch.ids = gatherer->numbers + gatherer->next;
    launch->batch.gather = 1;
    launch->batch.count = work->batch_size;
    launch->out =
        gatherer->out + gatherer->batches++ % BUFFERS * work->batch_size * work->plan->to_bytes;
    gatherer->next = (gatherer->next + work->batch_size) % work->material->count;
    const struct stk_launch_grid grid = gatherer->kernel->grid(launch);
    return bench_gpu_launch(gatherer->gpu, gatherer->loaded, grid.x, grid.y, STK_LAUNCH_THREADS,
                            launch);
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
