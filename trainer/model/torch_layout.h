/* torch_layout.h - converts a tensor between our order of elements and PyTorch's.
 *
 *   here    [rows][h][w][c]     convolution: rows = filters; linear after a flattened image: outputs
 *   file    [rows][c][h][w]
 *
 * Other tensors are the same in both. */
#ifndef STK_TRAINER_TORCH_LAYOUT_H
#define STK_TRAINER_TORCH_LAYOUT_H

#include "trainer/model/model.h"

/* Both hold parameter->elements floats; file may lie at any address. */
void stk_layout_to_file(const stoker_model *model, const struct stk_parameter *parameter,
                        const float *here, void *file);
void stk_layout_from_file(const stoker_model *model, const struct stk_parameter *parameter,
                          const void *file, float *here);

#endif
