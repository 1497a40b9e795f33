/* idx.h - open IDX files under the name of another format. */
#ifndef STK_DATASETS_IDX_H
#define STK_DATASETS_IDX_H

#include <stoker/dataset.h>

/* Open a file of samples and, unless labels_path is NULL, one of labels. */
int stk_idx_open(stoker_dataset **out, const stoker_dataset_ops *ops, const char *images_path,
                 const char *labels_path, const stoker_dataset_options *options,
                 stoker_error *error);

extern const stoker_dataset_ops stk_mnist_ops; /* for ops: the name "mnist" */

#endif
