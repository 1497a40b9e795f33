/* loss.c - the host version of loss.cu, row by row, with the online maximum and sum. */
#include "kernels/train/host_kernels.h"

struct running {
    float largest, sum;
    uint32_t best; /* first class with the maximum */
};

static void take(struct running *r, float x, uint32_t i)
{
    if (x > r->largest) {
        r->sum = r->sum * expf(r->largest - x) + 1;
        r->largest = x;
        r->best = i;
    } else if (x != -INFINITY) { /* adds 0; -inf - -inf would be NaN */
        r->sum += expf(x - r->largest);
    }
}

static float row_loss(const struct stk_train_cross_entropy *a, enum stk_train_storage storage,
                      uint64_t first, int64_t label, float scale, uint32_t *best)
{
    struct running r = { -INFINITY, 0, UINT32_MAX };
    for (uint32_t i = 0; i < a->classes; i++)
        take(&r, stk_train_load(a->x, first + i, storage), i);
    const bool bad = label < 0 || label >= (int64_t)a->classes;
    const float base = r.largest < INFINITY ? r.largest + logf(r.sum) : NAN; /* inf - inf */
    float loss = 0;
    for (uint32_t i = 0; i < a->classes; i++) {
        const float log_p = stk_train_load(a->x, first + i, storage) - base;
        const float wanted =
            a->smoothing / (float)a->classes + ((int64_t)i == label ? 1 - a->smoothing : 0);
        if (!bad && wanted > 0)
            loss -= wanted * log_p;
        if (a->dx != NULL)
            stk_train_store(a->dx, first + i, bad ? 0 : (expf(log_p) - wanted) * scale, storage);
    }
    *best = r.best;
    return loss;
}

void stk_train_host_cross_entropy(const struct stk_train_cross_entropy *a,
                                  enum stk_train_storage storage)
{
    const float scale = a->gradient_factor * (a->state == NULL ? 1 : a->state->loss_scale);
    for (uint32_t row = 0; row < a->rows; row++) {
        const int64_t label = a->labels[row];
        const bool bad = label < 0 || label >= (int64_t)a->classes;
        uint32_t best = 0;
        a->metrics->loss_sum +=
            (double)row_loss(a, storage, (uint64_t)row * a->classes, label, scale, &best);
        a->metrics->correct += !bad && (int64_t)best == label;
        a->metrics->bad_labels += bad;
    }
    a->metrics->count += a->rows;
}

STK_TRAIN_HOST_KERNEL(stk_train_softmax_cross_entropy, stk_train_cross_entropy,
                      stk_train_host_cross_entropy)

static void mse(const struct stk_train_mse *a, enum stk_train_storage storage)
{
    const float scale = a->gradient_factor * (a->state == NULL ? 1 : a->state->loss_scale);
    const float factor = 2 / (float)a->outputs * scale;
    double sum = 0;
    for (uint64_t i = 0; i < (uint64_t)a->rows * a->outputs; i++) {
        const float off = stk_train_load(a->x, i, storage) - a->targets[i];
        sum += (double)(off * off);
        if (a->dx != NULL)
            stk_train_store(a->dx, i, off * factor, storage);
    }
    a->metrics->loss_sum += sum / a->outputs;
    a->metrics->count += a->rows;
}

STK_TRAIN_HOST_KERNEL(stk_train_mse, stk_train_mse, mse)
