/* axes.c - see axes.h. */
#include "datasets/axes.h"

enum { CHANNELS_MAX = 4 };

void stk_axes_find_image(stoker_dataset_info *info)
{
    if (info->dtype != STOKER_UINT8)
        return;
    if (info->rank == 2) {
        info->shape[2] = 1;
        info->rank = 3;
        info->is_image = true;
    } else if (info->rank == 3) {
        info->is_image = info->shape[2] <= CHANNELS_MAX;
    }
}
