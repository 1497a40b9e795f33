/* train_bias.c - twin of train_bias.cu: the same additions in the same order, so the same bits. */
#include "kernels/train_twins.h"

enum { ROWS = STK_LAUNCH_THREADS / 32 };

/* One channel's sum over pixels [first, end): eight threads' sums, then the sum of those. */
static float chunk_sum(const struct stk_train_bias_gradient *a, enum stk_train_storage storage,
                       uint32_t c, uint64_t first, uint64_t end)
{
    float sum = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        float rows_sum = 0;
        for (uint64_t pixel = first + row; pixel < end; pixel += ROWS)
            rows_sum += stk_train_load(a->dy, pixel * a->c + c, storage);
        sum = row == 0 ? rows_sum : sum + rows_sum;
    }
    return sum;
}

static void bias_gradient(const struct stk_train_bias_gradient *a, enum stk_train_storage storage)
{
    const uint64_t chunk = (a->pixels + a->chunks - 1) / a->chunks;
    for (uint32_t c = 0; c < a->c; c++) {
        float sum = 0;
        for (uint64_t i = 0; i < a->chunks; i++) {
            const uint64_t first = i * chunk;
            const uint64_t end = first + chunk < a->pixels ? first + chunk : a->pixels;
            sum += chunk_sum(a, storage, c, first, end);
        }
        a->bias_grad[c] += sum;
    }
}

STK_TRAIN_TWIN(stk_train_bias_gradient, stk_train_bias_gradient, bias_gradient)
