/* concat.h - several data sets as one, one after the other: what concat and mix share. */
#ifndef STK_DATASETS_VIEWS_CONCAT_H
#define STK_DATASETS_VIEWS_CONCAT_H

#include "datasets/views/view.h"

/* Make the view's samples those of source 0, then those of source 1, and so on: fields, classes, ids, files and
 * description. On failure the view is half made, and the caller frees it. Errors: as stoker_dataset_concat(). */
int stk_view_join(const struct stk_view_making *making, struct stk_view *view);

#endif
