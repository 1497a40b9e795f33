/* axes.h - recognise images among arrays. */
#ifndef STK_DATASETS_AXES_H
#define STK_DATASETS_AXES_H

#include <stoker/dataset.h>

/* Set is_image from dtype, rank and shape of a row: uint8 with two axes is a gray image and gets a
 * third axis; uint8 with three axes, the last of 1..4, is an image. */
static inline void stk_axes_find_image(stoker_dataset_info *info)
{
    if (info->dtype == STOKER_DTYPE_UINT8 && info->rank == 2)
        info->shape[info->rank++] = 1;
    info->is_image = info->dtype == STOKER_DTYPE_UINT8 && info->rank == 3 && info->shape[2] <= 4;
}

#endif
