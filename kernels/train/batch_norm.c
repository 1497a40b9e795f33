/* batch_norm.c - twin of batch_norm.cu. */
#include "kernels/train/elements.h"
#include "kernels/train/twins.h"

/* y = scale x + shift. */
static void store_scale(const struct stk_train_batch_norm_statistics *a,
                        enum stk_train_storage storage, uint32_t c, float mean, float inverse)
{
    const float scale = a->gamma[c] * inverse;
    stk_train_store(a->scale, c, scale, storage);
    stk_train_store(a->shift, c, a->beta[c] - mean * scale, storage);
}

static void statistics(const struct stk_train_batch_norm_statistics *a,
                       enum stk_train_storage storage)
{
    for (uint32_t c = 0; c < a->c; c++) {
        if (a->sum == NULL) {
            store_scale(a, storage, c, a->known_mean[c], a->known_inverse[c]);
            continue;
        }
        const struct stk_train_moments_of_channel m =
            stk_train_channel_moments(a->sum[c], a->square_sum[c], a->pixels, a->epsilon);
        a->mean[c] = m.mean;
        a->inverse[c] = m.inverse;
        if (a->running_mean != NULL) {
            a->running_mean[c] = stk_train_move(a->running_mean[c], m.mean, a->momentum);
            a->running_var[c] = stk_train_move(a->running_var[c], m.unbiased, a->momentum);
        }
        if (a->scale != NULL)
            store_scale(a, storage, c, m.mean, m.inverse);
    }
}

static void batch_norm(const struct stk_train_batch_norm *a, enum stk_train_storage storage)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const uint32_t c = i % a->c;
        const float inverse =
            a->inverse != NULL ? a->inverse[c] : stk_train_inverse(a->variance[c], a->epsilon);
        float value = stk_train_normalise(stk_train_load(a->x, i, storage), a->mean[c], inverse,
                                          a->gamma[c], a->beta[c]);
        if (a->x2 != NULL)
            value += stk_train_load(a->x2, i, storage);
        stk_train_store(a->y, i, a->relu != 0 && value < 0 ? 0 : value, storage);
    }
}

STK_TRAIN_TWIN(stk_train_batch_norm_statistics, stk_train_batch_norm_statistics, statistics)
STK_TRAIN_TWIN(stk_train_batch_norm, stk_train_batch_norm, batch_norm)
