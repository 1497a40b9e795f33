/* channel_sums.c - the host version of channel_sums.cu: the same additions in the same order, so the same
 * bits. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

/* Returns one value of element `at` of channel c. */
typedef float value_fn(const void *arguments, enum stk_train_storage storage, uint64_t at,
                       uint32_t c);

struct summed {
    value_fn *value;
    const void *arguments;
    enum stk_train_storage storage;
    uint64_t pixels;
    uint32_t c, chunks;
};

/* Threads of a block that share a channel. */
static uint32_t rows_of(const struct summed *s, uint32_t c)
{
    const uint32_t channels = stk_train_group_channels(s->c, c / STK_TRAIN_SUM_CHANNELS);
    return STK_LAUNCH_THREADS / (channels / stk_train_width(s->c, stk_train_bytes(s->storage)));
}

/* Adds up a channel over a chunk: first the sums of the threads, then these in pairs. */
static float chunk_sum(const struct summed *s, uint32_t c, uint32_t index)
{
    const uint64_t chunk = (s->pixels + s->chunks - 1) / s->chunks;
    const uint64_t first = index * chunk;
    const uint64_t end = first + chunk < s->pixels ? first + chunk : s->pixels;
    const uint32_t rows = rows_of(s, c);
    float sums[STK_LAUNCH_THREADS] = { 0 };
    for (uint32_t row = 0; row < rows; row++)
        for (uint64_t pixel = first + row; pixel < end; pixel += rows)
            sums[row] += s->value(s->arguments, s->storage, pixel * s->c + c, c);
    for (uint32_t half = STK_LAUNCH_THREADS / 2; half > 0; half /= 2)
        for (uint32_t row = 0; row < half && row + half < rows; row++)
            sums[row] += sums[row + half];
    return sums[0];
}

/* Adds up all chunks: first those of each thread of the last block, then these in pairs. */
static struct stk_train_sum whole_sum(const struct summed *s, uint32_t c)
{
    const uint32_t parts =
        STK_LAUNCH_THREADS / stk_train_group_channels(s->c, c / STK_TRAIN_SUM_CHANNELS);
    struct stk_train_sum sums[STK_LAUNCH_THREADS] = { 0 };
    for (uint32_t chunk = 0; chunk < s->chunks; chunk++)
        stk_train_sum_add(&sums[chunk % parts], chunk_sum(s, c, chunk));
    for (uint32_t half = STK_LAUNCH_THREADS / 2; half > 0; half /= 2)
        for (uint32_t part = 0; part < half && part + half < parts; part++)
            stk_train_sum_join(&sums[part], &sums[part + half]);
    return sums[0];
}

static double whole_value(const struct summed *s, uint32_t c)
{
    const struct stk_train_sum sum = whole_sum(s, c);
    return stk_train_sum_value(&sum);
}

/* ---- bias --------------------------------------------------------------------------------------- */

static float bias_value(const void *arguments, enum stk_train_storage storage, uint64_t at,
                        uint32_t c)
{
    (void)c;
    return stk_train_load(((const struct stk_train_bias_gradient *)arguments)->dy, at, storage);
}

static void bias_gradient(const struct stk_train_bias_gradient *a, enum stk_train_storage storage)
{
    const struct summed s = { bias_value, a, storage, a->pixels, a->c, a->chunks };
    for (uint32_t c = 0; c < a->c; c++) {
        const struct stk_train_sum sum = whole_sum(&s, c);
        stk_train_add_to(&a->bias_grad[c], stk_train_sum_float(&sum), a->write);
    }
}

float stk_train_host_sum(stk_train_value_fn *value, const struct stk_train_bias_gradient *shape,
                         const void *arguments, enum stk_train_storage storage, uint32_t c)
{
    const struct summed s = { value, arguments, storage, shape->pixels, shape->c, shape->chunks };
    const struct stk_train_sum sum = whole_sum(&s, c);
    return stk_train_sum_float(&sum);
}

/* ---- BatchNorm ---------------------------------------------------------------------------------- */

/* Relative to the channel's shift, [c]: to its first pixel, or to one that several GPUs share. */
struct shifted {
    const void *x;
    const float *shift; /* NULL = the first pixel */
};

static float offset(const void *arguments, enum stk_train_storage storage, uint64_t at, uint32_t c)
{
    const struct shifted *const a = arguments;
    const float shift = a->shift != NULL ? a->shift[c] : stk_train_load(a->x, c, storage);
    return stk_train_load(a->x, at, storage) - shift;
}

static float offset_squared(const void *arguments, enum stk_train_storage storage, uint64_t at,
                            uint32_t c)
{
    const float off = offset(arguments, storage, at, c);
    return off * off;
}

static void moments(const struct stk_train_batch_norm_moments *a, enum stk_train_storage storage)
{
    const struct shifted x = { a->x, NULL };
    const struct summed first = { offset, &x, storage, a->pixels, a->c, a->chunks };
    const struct summed second = { offset_squared, &x, storage, a->pixels, a->c, a->chunks };
    for (uint32_t c = 0; c < a->c; c++) {
        const struct stk_train_moments_of_channel m =
            stk_train_shifted_moments(whole_value(&first, c), whole_value(&second, c),
                                      stk_train_load(a->x, c, storage), a->pixels, a->epsilon);
        a->mean[c] = m.mean;
        a->inverse[c] = m.inverse;
        if (a->running_mean == NULL)
            continue;
        a->running_mean[c] = stk_train_move(a->running_mean[c], m.mean, a->momentum);
        a->running_var[c] = stk_train_move(a->running_var[c], m.unbiased, a->momentum);
    }
}

static void sums_to_share(const struct stk_train_batch_norm_sums *a, enum stk_train_storage storage)
{
    const struct shifted x = { a->x, a->shift };
    const struct summed first = { offset, &x, storage, a->pixels, a->c, a->chunks };
    const struct summed second = { offset_squared, &x, storage, a->pixels, a->c, a->chunks };
    for (uint32_t c = 0; c < a->c; c++) {
        a->sums[c] = whole_value(&first, c);
        a->sums[a->c + c] = whole_value(&second, c);
    }
}

/* Returns the gradient at element `at` of channel c: 0 if ReLU cut it off. */
static float passed(const void *arguments, enum stk_train_storage storage, uint64_t at, uint32_t c)
{
    const struct stk_train_batch_norm_backward *const a = arguments;
    const float dy = stk_train_load(a->dy, at, storage);
    if (a->relu == 0)
        return dy;
    const float y =
        a->y != NULL
            ? stk_train_load(a->y, at, storage)
            : stk_train_rounded(stk_train_normalise(stk_train_load(a->x, at, storage), a->mean[c],
                                                    a->inverse[c], a->gamma[c], a->beta[c]),
                                storage);
    return y > 0 ? dy : 0;
}

static float normalised(const struct stk_train_batch_norm_backward *a,
                        enum stk_train_storage storage, uint64_t at, uint32_t c)
{
    return (stk_train_load(a->x, at, storage) - a->mean[c]) * a->inverse[c];
}

static float gamma_value(const void *arguments, enum stk_train_storage storage, uint64_t at,
                         uint32_t c)
{
    return passed(arguments, storage, at, c) * normalised(arguments, storage, at, c);
}

static void backward_sums(const struct stk_train_batch_norm_backward *a,
                          enum stk_train_storage storage)
{
    const struct summed gammas = { gamma_value, a, storage, a->pixels, a->c, a->chunks };
    const struct summed betas = { passed, a, storage, a->pixels, a->c, a->chunks };
    for (uint32_t c = 0; c < a->c; c++) {
        const double gamma = whole_value(&gammas, c);
        const double beta = whole_value(&betas, c);
        a->sums[c] = (float)gamma;
        a->sums[a->c + c] = (float)beta;
        stk_train_add_to(&a->gamma_grad[c], a->sums[c], a->write);
        stk_train_add_to(&a->beta_grad[c], a->sums[a->c + c], a->write);
        if (a->sums_of_all == NULL)
            continue;
        a->sums_of_all[c] = gamma;
        a->sums_of_all[a->c + c] = beta;
    }
}

static void backward(const struct stk_train_batch_norm_backward *a, enum stk_train_storage storage)
{
    const bool together = a->sums_of_all != NULL;
    const float pixels = (float)(together ? a->pixels_of_all : a->pixels);
    for (uint64_t i = 0; i < a->pixels * a->c; i++) {
        const uint32_t c = (uint32_t)(i % a->c);
        const float gamma = together ? (float)a->sums_of_all[c] : a->sums[c];
        const float beta = together ? (float)a->sums_of_all[a->c + c] : a->sums[a->c + c];
        const float dx =
            stk_train_norm_gradient(passed(a, storage, i, c), normalised(a, storage, i, c),
                                    a->gamma[c] * a->inverse[c], beta, gamma, pixels);
        stk_train_store(a->dx, i, dx, storage);
    }
}

STK_TRAIN_HOST_KERNEL(stk_train_bias_gradient, stk_train_bias_gradient, bias_gradient)
STK_TRAIN_HOST_KERNEL(stk_train_batch_norm_moments, stk_train_batch_norm_moments, moments)
STK_TRAIN_HOST_KERNEL(stk_train_batch_norm_sums, stk_train_batch_norm_sums, sums_to_share)
STK_TRAIN_HOST_KERNEL(stk_train_batch_norm_backward_sums, stk_train_batch_norm_backward,
                      backward_sums)
STK_TRAIN_HOST_KERNEL(stk_train_batch_norm_backward, stk_train_batch_norm_backward, backward)
