/* elements.h - the arithmetic of one element, which kernels and their grids share.
 *
 * Additions, products, quotients and square roots only, each rounded to float and never fused: an
 * optimizer's step has the same bits on every device. The formulas are those of trainer/update/,
 * which names their sources. */
#ifndef STK_KERNELS_TRAIN_ELEMENTS_H
#define STK_KERNELS_TRAIN_ELEMENTS_H

#include "kernels/train/arguments.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __CUDACC__
#define STK_ELEMENT static __host__ __device__ inline
#else
#define STK_ELEMENT static inline
#endif

enum { STK_TRAIN_PACK = 8 /* elements per thread of an elementwise kernel */ };

/* max(x, 0), but NaN stays NaN. */
STK_ELEMENT float stk_train_rectified(float x)
{
    return x < 0 ? 0 : x;
}

/* Adds to a gradient, or, as the first pass of an update does, writes it. */
STK_ELEMENT void stk_train_add_to(float *sum, float value, uint32_t write)
{
    *sum = write != 0 ? value : *sum + value;
}

/* ---- loss scale: as trainer/update/loss_scale.h ---------------------------------------------- */

#define STK_TRAIN_SCALE_MIN  0x1p-14F
#define STK_TRAIN_SCALE_MAX  0x1p24F
#define STK_TRAIN_SCALE_GOOD 2000

/* Updates the scale. Returns true if this update is to be made. */
STK_ELEMENT bool stk_train_take(struct stk_train_state *state, bool finite, bool dynamic)
{
    if (!dynamic)
        return true;
    if (!finite) {
        state->good_updates = 0;
        if (state->loss_scale / 2 >= STK_TRAIN_SCALE_MIN)
            state->loss_scale /= 2;
        return false;
    }
    if (++state->good_updates == STK_TRAIN_SCALE_GOOD) {
        state->good_updates = 0;
        if (state->loss_scale * 2 <= STK_TRAIN_SCALE_MAX)
            state->loss_scale *= 2;
    }
    return true;
}

/* ---- factors of one update ------------------------------------------------------------------- */

STK_ELEMENT void stk_train_adam_factors(struct stk_train_factors *f,
                                        const struct stk_train_rule *rule, float rate, double step)
{
    f->rate = (float)((double)rate / (1 - pow(rule->beta1, step)));
    f->root2 = (float)sqrt(1 - pow(rule->beta2, step));
    if (rule->decoupled != 0) {
        f->decay = 0;
        f->shrink = (float)(1 - (double)rate * (double)rule->weight_decay);
    }
}

STK_ELEMENT void stk_train_asgd_factors(struct stk_train_factors *f,
                                        const struct stk_train_rule *rule, float rate, double step)
{
    const double before = step - 1;
    const double eta =
        (double)rate / pow(1 + (double)rule->lambd * (double)rate * before, (double)rule->alpha);
    const double averaged = before - (double)rule->t0;
    f->rate = (float)eta;
    f->shrink = (float)(1 - (double)rule->lambd * eta);
    f->add1 = (float)(averaged > 1 ? 1 / averaged : 1);
}

/* step: 1 for the first update. Powers come last, behind what is simply stored: on a GPU few
 * registers outlast them. */
STK_ELEMENT void stk_train_find_factors(struct stk_train_factors *f,
                                        const struct stk_train_rule *rule, float rate,
                                        uint64_t step)
{
    f->decay = rule->weight_decay;
    f->rate = rate;
    f->keep1 = (float)rule->beta1;
    f->add1 = (float)(1 - rule->beta1);
    f->keep2 = (float)rule->beta2;
    f->add2 = (float)(1 - rule->beta2);
    f->root2 = 1;
    f->epsilon = rule->epsilon;
    f->shrink = 1;
    f->momentum = rule->momentum;
    f->average = (float)(1 - rule->ema_decay);
    switch (rule->loop) {
    case STK_TRAIN_SGD:
    case STK_TRAIN_SGD_MOMENTUM:
    case STK_TRAIN_SGD_NESTEROV:
        f->keep1 = step == 1 ? 0 : rule->momentum;
        f->add1 = step == 1 ? 1 : 1 - rule->dampening;
        break;
    case STK_TRAIN_ADAM:
    case STK_TRAIN_ADAMAX:
        stk_train_adam_factors(f, rule, rate, (double)step);
        break;
    case STK_TRAIN_ADAGRAD:
        f->rate = (float)((double)rate / (1 + (double)(step - 1) * (double)rule->lr_decay));
        break;
    case STK_TRAIN_ASGD:
        stk_train_asgd_factors(f, rule, rate, (double)step);
        break;
    default:
        break;
    }
}

/* 1 / (loss scale x samples). */
STK_ELEMENT double stk_train_mean_factor(float loss_scale, uint64_t samples)
{
    return 1 / ((double)loss_scale * (double)(samples > 0 ? samples : 1));
}

/* That factor, reduced if the mean's norm exceeds the limit, as in torch.nn.utils.clip_grad_norm_.
 * Not finite if the norm is not. */
STK_ELEMENT float stk_train_gradient_factor(const struct stk_train_rule *rule, double mean_factor,
                                            double norm)
{
    const double kept = (double)rule->clip_norm / (norm + 1e-6);
    return (float)(rule->clip_norm > 0 && !(kept >= 1) ? mean_factor * kept : mean_factor);
}

/* Prepares one update. */
STK_ELEMENT void stk_train_prepare_state(const struct stk_train_prepare *a)
{
    struct stk_train_state *const s = a->state;
    const double factor = stk_train_mean_factor(s->loss_scale, a->samples);
    const double other = a->other == NULL ? 0 : a->other->norm_squared;
    const bool finite = s->finite != 0 && (a->other == NULL || a->other->finite != 0);
    const double norm = sqrt(s->norm_squared + other) * factor;
    const uint64_t last = a->rate_count - 1;
    const float rate = a->learning_rates[s->step < last ? s->step : last];
    s->gradient_norm = (float)norm;
    s->tried++;
    s->use = stk_train_take(s, finite, a->rule.dynamic != 0) ? 1 : 0;
    if (s->use == 0)
        return;
    s->step++;
    s->factors.gradient = stk_train_gradient_factor(&a->rule, factor, norm);
    stk_train_find_factors(&s->factors, &a->rule, rate, s->step);
}

/* ---- one weight ------------------------------------------------------------------------------ */

/* The values of a weight that one step reads and writes. */
struct stk_train_weight {
    float weight, moment[STK_TRAIN_STATE_MAX];
};

STK_ELEMENT void stk_train_rmsprop(const struct stk_train_factors *f, struct stk_train_weight *w,
                                   float gradient, bool centered, bool momentum)
{
    float *const velocity = centered ? &w->moment[2] : &w->moment[1];
    w->moment[0] = f->keep1 * w->moment[0] + f->add1 * gradient * gradient;
    float spread = w->moment[0];
    if (centered) {
        w->moment[1] = f->keep1 * w->moment[1] + f->add1 * gradient;
        spread -= w->moment[1] * w->moment[1];
    }
    float delta = gradient / (sqrtf(spread) + f->epsilon);
    if (momentum) {
        *velocity = f->momentum * *velocity + delta;
        delta = *velocity;
    }
    w->weight -= f->rate * delta;
}

/* The loop is a compile-time constant, so unused code is removed. */
STK_ELEMENT void stk_train_step_weight(uint32_t loop, const struct stk_train_factors *f,
                                       struct stk_train_weight *w, float stored_gradient)
{
    const float kept = loop == STK_TRAIN_ADAM ? w->weight * f->shrink : w->weight;
    const float gradient = stored_gradient * f->gradient + f->decay * kept;
    float *const m = w->moment;
    switch (loop) {
    case STK_TRAIN_SGD:
        w->weight -= f->rate * gradient;
        break;
    case STK_TRAIN_SGD_MOMENTUM:
        m[0] = f->keep1 * m[0] + f->add1 * gradient;
        w->weight -= f->rate * m[0];
        break;
    case STK_TRAIN_SGD_NESTEROV:
        m[0] = f->keep1 * m[0] + f->add1 * gradient;
        w->weight -= f->rate * (gradient + f->momentum * m[0]);
        break;
    case STK_TRAIN_ADAM:
        m[0] = f->keep1 * m[0] + f->add1 * gradient;
        m[1] = f->keep2 * m[1] + f->add2 * gradient * gradient;
        w->weight = kept - f->rate * m[0] / (sqrtf(m[1]) / f->root2 + f->epsilon);
        break;
    case STK_TRAIN_ADAMAX: {
        m[0] = f->keep1 * m[0] + f->add1 * gradient;
        const float faded = f->keep2 * m[1];
        const float now = fabsf(gradient) + f->epsilon;
        m[1] = faded > now ? faded : now;
        w->weight -= f->rate * m[0] / m[1];
        break;
    }
    case STK_TRAIN_ADAGRAD:
        m[0] += gradient * gradient;
        w->weight -= f->rate * gradient / (sqrtf(m[0]) + f->epsilon);
        break;
    case STK_TRAIN_ADADELTA: {
        m[0] = f->keep1 * m[0] + f->add1 * gradient * gradient;
        const float delta = sqrtf(m[1] + f->epsilon) / sqrtf(m[0] + f->epsilon) * gradient;
        m[1] = f->keep1 * m[1] + f->add1 * delta * delta;
        w->weight -= f->rate * delta;
        break;
    }
    case STK_TRAIN_RMSPROP:
        stk_train_rmsprop(f, w, gradient, false, false);
        break;
    case STK_TRAIN_RMSPROP_MOMENTUM:
        stk_train_rmsprop(f, w, gradient, false, true);
        break;
    case STK_TRAIN_RMSPROP_CENTERED:
        stk_train_rmsprop(f, w, gradient, true, false);
        break;
    case STK_TRAIN_RMSPROP_CENTERED_MOMENTUM:
        stk_train_rmsprop(f, w, gradient, true, true);
        break;
    case STK_TRAIN_ASGD:
        w->weight = w->weight * f->shrink - f->rate * gradient;
        m[0] += (w->weight - m[0]) * f->add1;
        break;
    default:
        break;
    }
}

/* Number of moments that a loop keeps. */
STK_ELEMENT uint32_t stk_train_moments(uint32_t loop)
{
    switch (loop) {
    case STK_TRAIN_SGD:
        return 0;
    case STK_TRAIN_ADAM:
    case STK_TRAIN_ADAMAX:
    case STK_TRAIN_ADADELTA:
    case STK_TRAIN_RMSPROP_MOMENTUM:
    case STK_TRAIN_RMSPROP_CENTERED:
        return 2;
    case STK_TRAIN_RMSPROP_CENTERED_MOMENTUM:
        return 3;
    default:
        return 1;
    }
}

/* ---- sums over pixels, by channel ------------------------------------------------------------ */

enum { STK_TRAIN_SUM_CHANNELS = 32 /* most channels of a block that sums by channel */ };

/* Adjacent channels that a thread loads at once: as many as 16 bytes hold, if c is a multiple of
 * that. */
STK_ELEMENT uint32_t stk_train_width(uint32_t c, uint32_t bytes_each)
{
    return c % (16 / bytes_each) == 0 ? 16 / bytes_each : 1;
}

/* Channels of group number `group`. */
STK_ELEMENT uint32_t stk_train_group_channels(uint32_t c, uint32_t group)
{
    const uint32_t left = c - group * STK_TRAIN_SUM_CHANNELS;
    return left < STK_TRAIN_SUM_CHANNELS ? left : STK_TRAIN_SUM_CHANNELS;
}

/* A sum of many floats as two of them, high + low, which keep twice the digits (Knuth, TAOCP 2,
 * 4.2.2, theorem B). GPUs for graphics and inference add doubles 64 times slower than floats. */
struct stk_train_sum {
    float high, low;
};

STK_ELEMENT void stk_train_sum_add(struct stk_train_sum *sum, float x)
{
    const float total = sum->high + x;
    const float added = total - sum->high;
    sum->low += (sum->high - (total - added)) + (x - added);
    sum->high = total;
}

STK_ELEMENT void stk_train_sum_join(struct stk_train_sum *sum, const struct stk_train_sum *other)
{
    stk_train_sum_add(sum, other->high);
    sum->low += other->low;
}

/* After an overflow `low` is not a number, and `high` alone is the sum. */
STK_ELEMENT double stk_train_sum_value(const struct stk_train_sum *sum)
{
    return isfinite(sum->high) ? (double)sum->high + (double)sum->low : (double)sum->high;
}
STK_ELEMENT float stk_train_sum_float(const struct stk_train_sum *sum)
{
    return isfinite(sum->high) ? sum->high + sum->low : sum->high;
}

/* ---- loss ------------------------------------------------------------------------------------ */

/* Adjacent lanes of a warp that share a row of logits: a power of two, for about four classes
 * each. */
STK_ELEMENT uint32_t stk_train_row_lanes(uint32_t classes)
{
    uint32_t lanes = 1;
    while (lanes < 32 && lanes * 4 < classes)
        lanes *= 2;
    return lanes;
}

/* ---- BatchNorm ------------------------------------------------------------------------------- */

STK_ELEMENT float stk_train_inverse(float variance, float epsilon)
{
    return (float)(1 / sqrt((double)variance + (double)epsilon));
}

struct stk_train_moments_of_channel {
    float mean, inverse, unbiased; /* unbiased variance */
};

/* From sums of x - shift: the closer shift is to the mean, the smaller the rounding error. */
STK_ELEMENT struct stk_train_moments_of_channel stk_train_shifted_moments(
    double sum, double square_sum, float shift, uint64_t pixels, float epsilon)
{
    struct stk_train_moments_of_channel m;
    const double count = (double)pixels;
    const double off = sum / count;
    const double spread = square_sum / count - off * off;
    const double variance = spread > 0 ? spread : 0;
    m.mean = (float)((double)shift + off);
    m.inverse = (float)(1 / sqrt(variance + (double)epsilon));
    m.unbiased = (float)(pixels > 1 ? variance * count / (count - 1) : variance);
    return m;
}

/* A running statistic. */
STK_ELEMENT float stk_train_move(float running, float now, float momentum)
{
    return (float)((1 - (double)momentum) * (double)running + (double)momentum * (double)now);
}

/* Channel c of batch_norm_finish. */
STK_ELEMENT void stk_train_finish_channel(const struct stk_train_batch_norm_finish *a, uint32_t c)
{
    const struct stk_train_moments_of_channel m = stk_train_shifted_moments(
        a->sums[c], a->sums[a->c + c], a->shift[c], a->pixels, a->epsilon);
    a->mean[c] = m.mean;
    a->inverse[c] = m.inverse;
    if (a->running_mean == NULL)
        return;
    a->running_mean[c] = stk_train_move(a->running_mean[c], m.mean, a->momentum);
    a->running_var[c] = stk_train_move(a->running_var[c], m.unbiased, a->momentum);
}

/* Element i of move_statistics. */
STK_ELEMENT void stk_train_move_by_all(const struct stk_train_move_statistics *a, uint64_t i)
{
    float running = a->running[i];
    for (uint32_t r = 0; r < a->ranks; r++) {
        const float found = a->found[r * a->count + i];
        if (!isnan(found))
            running = stk_train_move(running, found, a->momenta[i]);
    }
    a->running[i] = running;
}

/* As trainer/backend/common/batch_norm.h. */
STK_ELEMENT float stk_train_normalize(float x, float mean, float inverse, float gamma, float beta)
{
    return (x - mean) * (inverse * gamma) + beta;
}

/* The gradient of x, from the sums over all pixels. hat: x, normalized. */
STK_ELEMENT float stk_train_norm_gradient(float dy, float hat, float gamma_inverse, float beta_sum,
                                          float gamma_sum, float pixels)
{
    return gamma_inverse * (dy - (beta_sum + hat * gamma_sum) / pixels);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Outputs whose windows cover `at` along one axis: [first, end). */
struct stk_train_range {
    uint32_t first, end;
};

STK_ELEMENT struct stk_train_range stk_train_covering(uint32_t at, uint32_t kernel, uint32_t stride,
                                                      uint32_t padding, uint32_t outputs)
{
    const uint32_t place = at + padding;
    const uint32_t end = place / stride + 1;
    struct stk_train_range range;
    range.first = place < kernel ? 0 : (place - kernel) / stride + 1;
    range.end = end < outputs ? end : outputs;
    return range;
}

/* Positions of the kernel, [first, end), inside the image for output `at`. */
STK_ELEMENT struct stk_train_range stk_train_inside(uint32_t at, uint32_t kernel, uint32_t stride,
                                                    uint32_t padding, uint32_t extent)
{
    const uint32_t start = at * stride;
    struct stk_train_range range;
    range.first = start < padding ? padding - start : 0;
    range.end = extent + padding < start + kernel ? extent + padding - start : kernel;
    return range;
}

/* Tiles of `stride` positions along one axis, of those that begin where windows do: as many as have
 * a position in the image. */
STK_ELEMENT uint32_t stk_train_tiles(uint32_t extent, uint32_t stride, uint32_t padding)
{
    return (extent + padding - 1) / stride - padding / stride + 1;
}

/* Inputs along one axis of a tile that a thread of the maximum's backward takes: the stride, or 2
 * for windows of 3 x 3 at every input, which share most of their windows. */
STK_ELEMENT uint32_t stk_train_tile_side(const struct stk_train_window *w, uint32_t axis)
{
    const bool dense =
        w->kernel[0] == 3 && w->kernel[1] == 3 && w->stride[0] == 1 && w->stride[1] == 1;
    return dense ? 2 : w->stride[axis];
}

/* Returns true if a position takes two bytes. */
STK_ELEMENT bool stk_train_is_wide(const struct stk_train_window *w)
{
    return w->kernel[0] * w->kernel[1] > 256;
}

#endif
