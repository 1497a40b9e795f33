/* idx.h - the data set made of an IDX file of samples and perhaps one of labels. */
#ifndef STK_DATASETS_IDX_H
#define STK_DATASETS_IDX_H

#include <stoker/dataset.h>

/* Open it; labels_path may be NULL. ops is one of those below. */
int stk_idx_open(stoker_dataset **out, const stoker_dataset_ops *ops, const char *images_path,
                 const char *labels_path, const stoker_dataset_options *options);

/* The callbacks under the two names that a data set of IDX files may have. */
extern const stoker_dataset_ops stk_idx_ops;
extern const stoker_dataset_ops stk_mnist_ops;

#endif
