/* axes.h - which arrays are images. */
#ifndef STK_DATASETS_AXES_H
#define STK_DATASETS_AXES_H

#include <stoker/dataset.h>

/* Tell by dtype, rank and shape of a row, which are set, whether rows are images: bytes on two
 * axes are a gray one, whose third axis is added; on three with 1..4 values each, any one. */
void stk_axes_find_image(stoker_dataset_info *info);

#endif
