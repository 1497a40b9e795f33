/* update.c - the host version of update.cu. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

void stk_train_host_norm(const struct stk_train_norm *a, enum stk_train_storage storage)
{
    double sum = 0;
    bool finite = true;
    for (uint64_t i = 0; i < a->count; i++) {
        const float g = stk_train_load(a->gradients, i, storage);
        sum += (double)g * (double)g;
        finite = finite && isfinite(g);
    }
    a->state->norm_squared = sum;
    a->state->finite = finite;
}

STK_TRAIN_HOST_KERNEL(stk_train_gradient_norm, stk_train_norm, stk_train_host_norm)

void stk_train_prepare(const void *arguments)
{
    stk_train_prepare_state(arguments);
}

void stk_train_host_update(const struct stk_train_update *a, enum stk_train_storage storage)
{
    const struct stk_train_factors f = a->state->factors;
    if (a->state->use == 0)
        return;
    for (uint64_t i = 0; i < a->count; i++) {
        struct stk_train_weight w = { .weight = a->parameters[i] };
        for (uint32_t m = 0; m < stk_train_moments(a->loop); m++)
            w.moment[m] = a->moments[m][i];
        stk_train_step_weight(a->loop, &f, &w, a->gradients[i]);
        a->parameters[i] = w.weight;
        for (uint32_t m = 0; m < stk_train_moments(a->loop); m++)
            a->moments[m][i] = w.moment[m];
        if (a->half_weights != NULL)
            stk_train_store(a->half_weights, i, w.weight, storage);
        if (a->ema != NULL)
            a->ema[i] += (w.weight - a->ema[i]) * f.average;
    }
}

STK_TRAIN_HOST_KERNEL(stk_train_update, stk_train_update, stk_train_host_update)
