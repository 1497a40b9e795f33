/* batch_norm.c - BatchNorm among several threads.
 *
 *   sums of own samples ──barrier──▶ each thread adds all sums in the same order ──▶ own samples
 *                                    with pass->sums thread 0 adds those of other ranks, between
 *                                    two barriers more
 *
 * shared: [sum 0 or 1][thread][channel] doubles. scratch: the totals, per thread, and rows: the
 * channels of one pixel as floats, which T is converted to and from. */
#include "trainer/backend/common/batch_norm.h"
#include "trainer/backend/cpu/operations.h"
#include "trainer/backend/ref/rounding.h"
#include "trainer/plan/precision.h"

#include <math.h>
#include <string.h>

enum { ROW_X, ROW_DY, ROW_RESULT, ROWS };

uint64_t stk_cpu_batch_norm_scratch_bytes(const struct stk_layer *layer)
{
    return 2 * (uint64_t)layer->in.c * sizeof(double) +
           stk_round_to_line(ROWS * (uint64_t)layer->in.c * sizeof(float));
}

static float *row_in(const struct stk_cpu_task *task, int row)
{
    const uint64_t channels = task->o.layer->in.c;
    double *totals = task->scratch;
    return (float *)(void *)(totals + 2 * channels) + (uint64_t)row * channels;
}

/* The channels of a pixel: in place, or converted. */
static const float *read_row(const struct stk_cpu_task *task, const float *values, uint64_t pixel,
                             int row)
{
    const uint32_t channels = task->o.layer->in.c;
    if (!stk_is_narrow(task->o.storage))
        return values + pixel * channels;
    float *floats = row_in(task, row);
    stk_widen(floats, (const uint16_t *)(const void *)values + pixel * channels, channels,
              task->o.storage);
    return floats;
}

/* Where the channels of a pixel are written: in place, or in a row that store_row() rounds. */
static float *result_row(const struct stk_cpu_task *task, float *values, uint64_t pixel)
{
    if (stk_is_narrow(task->o.storage))
        return row_in(task, ROW_RESULT);
    return values + pixel * task->o.layer->in.c;
}

static void store_row(const struct stk_cpu_task *task, float *values, uint64_t pixel)
{
    const uint32_t channels = task->o.layer->in.c;
    if (stk_is_narrow(task->o.storage))
        stk_narrow((uint16_t *)(void *)values + pixel * channels, row_in(task, ROW_RESULT),
                   channels, task->o.storage);
}

uint64_t stk_cpu_batch_norm_shared_bytes(const struct stk_layer *layer, uint32_t threads)
{
    return 2 * (uint64_t)threads * layer->in.c * sizeof(double);
}

static double *sums_of(const struct stk_cpu_task *task, uint32_t which, uint32_t thread)
{
    return (double *)task->shared +
           ((uint64_t)which * task->threads + thread) * task->o.layer->in.c;
}

static struct stk_share pixels_of(const struct stk_cpu_task *task)
{
    const uint64_t plane = stk_plane(task->o.layer->in);
    const struct stk_share share = stk_share_of(task->o.count, task->thread, task->threads);
    return (struct stk_share){ share.begin * plane, share.end * plane };
}

/* All threads' sums of each channel, in the order of the threads. */
static void add_up(const struct stk_cpu_task *task, uint32_t which, double *total)
{
    const uint32_t channels = task->o.layer->in.c;
    memset(total, 0, channels * sizeof(*total));
    for (uint32_t thread = 0; thread < task->threads; thread++) {
        const double *sums = sums_of(task, which, thread);
        for (uint32_t c = 0; c < channels; c++)
            total[c] += sums[c];
    }
}

/* Totals of this rank become those of all ranks: thread 0 sums, and the others copy. scratch:
 * `rows` totals. */
static void add_ranks(const struct stk_cpu_task *task, double *totals, uint32_t rows)
{
    const uint32_t channels = task->o.layer->in.c;
    if (task->o.pass->sums == NULL)
        return;
    stk_thread_team_barrier(task->team); /* all have read the sums that are overwritten here */
    if (task->thread == 0) {
        stk_batch_norm_add(task->o.pass, totals, rows * channels);
        for (uint32_t row = 0; row < rows; row++)
            memcpy(sums_of(task, row, 0), totals + (uint64_t)row * channels,
                   channels * sizeof(*totals));
    }
    stk_thread_team_barrier(task->team);
    for (uint32_t row = 0; row < rows; row++)
        memcpy(totals + (uint64_t)row * channels, sums_of(task, row, 0),
               channels * sizeof(*totals));
    stk_thread_team_barrier(task->team); /* before anybody writes there again */
}

static double pixels_together(const struct stk_cpu_task *task)
{
    return (double)stk_batch_norm_samples(task->o.pass, task->o.count) *
           (double)stk_plane(task->o.layer->in);
}

static void sum_values(const struct stk_cpu_task *task, double *sums)
{
    const uint32_t channels = task->o.layer->in.c;
    const struct stk_share pixels = pixels_of(task);
    memset(sums, 0, channels * sizeof(*sums));
    for (uint64_t i = pixels.begin; i < pixels.end; i++) {
        const float *x = read_row(task, task->o.x, i, ROW_X);
        for (uint32_t c = 0; c < channels; c++)
            sums[c] += (double)x[c];
    }
}

static void sum_squares(const struct stk_cpu_task *task, const double *mean, double *sums)
{
    const uint32_t channels = task->o.layer->in.c;
    const struct stk_share pixels = pixels_of(task);
    memset(sums, 0, channels * sizeof(*sums));
    for (uint64_t i = pixels.begin; i < pixels.end; i++) {
        const float *x = read_row(task, task->o.x, i, ROW_X);
        for (uint32_t c = 0; c < channels; c++) {
            const double centerd = (double)x[c] - mean[c];
            sums[c] += centerd * centerd;
        }
    }
}

/* Thread 0 only: write aux and the running statistics. */
static void keep_statistics(const struct stk_cpu_task *task, const double *mean,
                            const double *variance)
{
    const struct stk_layer *layer = task->o.layer;
    const double pixels = pixels_together(task);
    const double momentum = (double)layer->momentum;
    float *aux = task->o.aux;
    for (uint32_t c = 0; c < layer->in.c; c++) {
        aux[c] = (float)mean[c];
        aux[layer->in.c + c] = (float)(1 / sqrt(variance[c] + (double)layer->epsilon));
        if (task->o.op->again || task->o.running_mean == NULL)
            continue;
        float *running_mean = &task->o.running_mean[c];
        float *running_var = &task->o.running_var[c];
        const double unbiased = pixels > 1 ? variance[c] * pixels / (pixels - 1) : variance[c];
        if (task->o.batch_mean != NULL) {
            task->o.batch_mean[c] = mean[c];
            task->o.batch_var[c] = unbiased;
            continue;
        }
        *running_mean = (float)((1 - momentum) * (double)*running_mean + momentum * mean[c]);
        *running_var = (float)((1 - momentum) * (double)*running_var + momentum * unbiased);
    }
}

void stk_cpu_batch_norm_forward(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint32_t channels = o->layer->in.c;
    const double pixels = pixels_together(task);
    double *mean = task->scratch;
    double *variance = mean + channels;

    sum_values(task, sums_of(task, 0, task->thread));
    stk_thread_team_barrier(task->team);
    add_up(task, 0, mean);
    add_ranks(task, mean, 1);
    for (uint32_t c = 0; c < channels; c++)
        mean[c] /= pixels;
    sum_squares(task, mean, sums_of(task, 1, task->thread));
    stk_thread_team_barrier(task->team);
    add_up(task, 1, variance);
    add_ranks(task, variance, 1);
    for (uint32_t c = 0; c < channels; c++)
        variance[c] /= pixels;
    if (task->thread == 0)
        keep_statistics(task, mean, variance);
    stk_thread_team_barrier(task->team);

    const float *aux = o->aux;
    const struct stk_share own = pixels_of(task);
    for (uint64_t i = own.begin; i < own.end; i++) {
        stk_batch_norm_row(result_row(task, o->y, i), read_row(task, o->x, i, ROW_X), aux,
                           aux + channels, o->weight, o->bias, channels, o->op->relu);
        store_row(task, o->y, i);
    }
}

/* dy of one pixel, cut off where ReLU did: in place, or in a row. x: that pixel's. */
static const float *passed(const struct stk_cpu_task *task, uint64_t pixel, const float *x)
{
    const struct stk_operands *o = &task->o;
    const uint32_t channels = o->layer->in.c;
    const float *dy = read_row(task, o->dy, pixel, ROW_DY);
    if (!o->op->relu)
        return dy;
    const float *aux = o->aux;
    float *row = row_in(task, ROW_RESULT);
    const float *y = row;
    if (o->y != NULL)
        y = read_row(task, o->y, pixel, ROW_RESULT);
    else
        stk_batch_norm_row(row, x, aux, aux + channels, o->weight, o->bias, channels, true);
    for (uint32_t c = 0; c < channels; c++) /* a value that rounds to 0 counts as cut off */
        row[c] = stk_rounded(y[c], o->storage) > 0 ? dy[c] : 0;
    return row;
}

static void sum_gradients(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint32_t channels = o->layer->in.c;
    const float *mean = o->aux;
    const float *inverse = mean + channels;
    double *gamma = sums_of(task, 0, task->thread);
    double *beta = sums_of(task, 1, task->thread);
    const struct stk_share own = pixels_of(task);
    memset(gamma, 0, channels * sizeof(*gamma));
    memset(beta, 0, channels * sizeof(*beta));
    for (uint64_t i = own.begin; i < own.end; i++) {
        const float *x = read_row(task, o->x, i, ROW_X);
        const float *dy = passed(task, i, x);
        for (uint32_t c = 0; c < channels; c++) {
            gamma[c] += (double)dy[c] * ((double)x[c] - (double)mean[c]) * (double)inverse[c];
            beta[c] += (double)dy[c];
        }
    }
}

static void write_gradient(const struct stk_cpu_task *task, const double *gamma, const double *beta)
{
    const struct stk_operands *o = &task->o;
    const uint32_t channels = o->layer->in.c;
    const double pixels = pixels_together(task);
    const float *mean = o->aux;
    const float *inverse = mean + channels;
    const struct stk_share own = pixels_of(task);
    for (uint64_t i = own.begin; i < own.end; i++) {
        const float *x = read_row(task, o->x, i, ROW_X);
        const float *dy = passed(task, i, x);
        float *dx = result_row(task, o->dx, i); /* may be dy: each element is read first */
        for (uint32_t c = 0; c < channels; c++) {
            const double hat = ((double)x[c] - (double)mean[c]) * (double)inverse[c];
            const double centerd = (double)dy[c] - (beta[c] + hat * gamma[c]) / pixels;
            dx[c] = (float)((double)o->weight[c] * (double)inverse[c] * centerd);
        }
        store_row(task, o->dx, i);
    }
}

void stk_cpu_batch_norm_backward(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint32_t channels = o->layer->in.c;
    double *gamma = task->scratch;
    double *beta = gamma + channels;
    sum_gradients(task);
    stk_thread_team_barrier(task->team);
    add_up(task, 0, gamma);
    add_up(task, 1, beta);
    if (task->thread == 0)
        for (uint32_t c = 0; c < channels; c++) {
            o->weight_grad[c] += (float)gamma[c];
            o->bias_grad[c] += (float)beta[c];
        }
    if (o->dx == NULL)
        return;
    add_ranks(task, gamma, 2); /* the gradients of weight and bias are summed with all others */
    write_gradient(task, gamma, beta);
}
