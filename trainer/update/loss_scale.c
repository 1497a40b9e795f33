/* loss_scale.c - see loss_scale.h. */
#include "trainer/update/loss_scale.h"

float stk_loss_scale_start(uint32_t batch)
{
    float scale = STK_LOSS_SCALE_START;
    while (scale * (float)batch > STK_LOSS_SCALE_START)
        scale /= 2;
    return scale;
}

bool stk_loss_scale_take(struct stk_loss_scale *scale, bool finite)
{
    if (!scale->dynamic)
        return true;
    if (!finite) {
        scale->good_updates = 0;
        if (scale->scale / 2 >= STK_LOSS_SCALE_MIN)
            scale->scale /= 2;
        return false;
    }
    if (++scale->good_updates == STK_LOSS_SCALE_GOOD_UPDATES) {
        scale->good_updates = 0;
        if (scale->scale * 2 <= STK_LOSS_SCALE_MAX)
            scale->scale *= 2;
    }
    return true;
}
