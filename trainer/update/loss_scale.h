/* loss_scale.h - the factor that keeps small gradients from vanishing in narrow types.
 *
 *                    overflow: halve, leave the update out, count from 0
 *                  ┌──────────────────────┐
 *                  ▼                      │
 *   start ──▶ [ scale, good updates in a row ] ──▶ good: use the update, count + 1
 *                  ▲                      │
 *                  └──────────────────────┘
 *                    2000 good ones: double, count from 0
 *
 * It is the factor of each sample's gradient: a pass sums them, and the update divides by the
 * number of samples. torch.cuda.amp.GradScaler scales the mean over a batch, from 65536 on. So the
 * start is 65536 / batch: the gradients in narrow types are then as large as PyTorch's, and
 * overflow no earlier.
 *
 * Between 2^-14 and 2^24: at the lowest, an overflow is none of the scale's fault and still leaves
 * the update out. As GradScaler, but for its backoff and growth bounds, which it has not. */
#ifndef STK_TRAINER_LOSS_SCALE_H
#define STK_TRAINER_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

enum { STK_LOSS_SCALE_GOOD_UPDATES = 2000 };
#define STK_LOSS_SCALE_START 65536.0F /* factor of a batch's mean loss */
#define STK_LOSS_SCALE_MIN   0x1p-14F
#define STK_LOSS_SCALE_MAX   0x1p24F

struct stk_loss_scale {
    float scale;
    uint32_t good_updates; /* in a row, since the scale last changed */
    bool dynamic;          /* false: the scale never changes, and no update is left out */
};

/* The scale to start with, for batches of 1..65536 samples: the largest power of two up to
 * STK_LOSS_SCALE_START / batch, so that it changes no bit of a gradient that neither overflows nor
 * underflows. */
float stk_loss_scale_start(uint32_t batch);

/* After the gradients of an update were looked at: whether they are to be used. */
bool stk_loss_scale_take(struct stk_loss_scale *scale, bool finite);

#endif
