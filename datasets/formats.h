/* formats.h - the formats, each defined in the folder of its name; mnist in idx/, views in
 * views/. */
#ifndef STK_DATASETS_FORMATS_H
#define STK_DATASETS_FORMATS_H

#include "loader/dataset/format.h"

extern const struct stk_format stk_format_mnist;
extern const struct stk_format stk_format_idx;
extern const struct stk_format stk_format_cifar;
extern const struct stk_format stk_format_npy;
extern const struct stk_format stk_format_npz;
extern const struct stk_format stk_format_tar;
extern const struct stk_format stk_format_synth;
extern const struct stk_format stk_format_csv;
extern const struct stk_format stk_format_shards;
extern const struct stk_format stk_format_folder;
extern const struct stk_format stk_format_tokens;
extern const struct stk_format stk_format_documents;
extern const struct stk_format stk_format_concat;
extern const struct stk_format stk_format_select;
extern const struct stk_format stk_format_packed;
extern const struct stk_format stk_format_mix;

#endif
