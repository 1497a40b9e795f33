/* formats.c - the table of formats, in the order in which they are asked to recognize a path. */
#include "datasets/formats.h"

#include <stddef.h>

const struct stk_format *const stk_formats[] = { &stk_format_mnist,
                                                 &stk_format_idx,
                                                 &stk_format_cifar,
                                                 &stk_format_npy,
                                                 &stk_format_npz,
                                                 &stk_format_tar,
                                                 &stk_format_synth,
                                                 &stk_format_csv,
                                                 &stk_format_shards,
                                                 &stk_format_folder,
                                                 &stk_format_tokens,
                                                 &stk_format_concat,
                                                 &stk_format_select,
                                                 &stk_format_packed,
                                                 &stk_format_documents,
                                                 &stk_format_mix,
                                                 NULL };
