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
 * Between 2^-14 and 2^24: at the lowest, an overflow is none of the scale's fault and still leaves the
 * update out. As torch.cuda.amp.GradScaler, but for its backoff and growth bounds, which it has not. */
#ifndef STK_TRAINER_LOSS_SCALE_H
#define STK_TRAINER_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

enum { STK_LOSS_SCALE_GOOD_UPDATES = 2000 };
#define STK_LOSS_SCALE_START 65536.0F
#define STK_LOSS_SCALE_MIN   0x1p-14F
#define STK_LOSS_SCALE_MAX   0x1p24F

struct stk_loss_scale {
    float scale;
    uint32_t good_updates; /* in a row, since the scale last changed */
    bool dynamic;          /* false: the scale never changes, and no update is left out */
};

/* After the gradients of an update were looked at: whether they are to be used. */
bool stk_loss_scale_take(struct stk_loss_scale *scale, bool finite);

#endif
