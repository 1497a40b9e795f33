/* axes.h - recognise images among arrays. */
#ifndef STK_DATASETS_AXES_H
#define STK_DATASETS_AXES_H

#include <stoker/dataset.h>

/* Set is_image from dtype, rank and shape of a row: uint8 with two axes is a gray image and gets a
 * third axis; uint8 with three axes, the last of 1..4, is an image. */
void stk_axes_find_image(stoker_dataset_info *info);

#endif
