/* classes.h - how many samples each class of a data set has. */
#ifndef STK_DATASETS_VIEWS_CLASSES_H
#define STK_DATASETS_VIEWS_CLASSES_H

#include "datasets/views/view.h"

enum { STK_VIEW_CLASSES_MAX = 1 << 24 };

struct stk_view_classes {
    uint64_t *counts; /* [count] samples per class */
    uint64_t count;   /* largest label + 1 */
};

/* Read all labels. STOKER_EINVAL: there are none, they are no classes, or one is negative;
 * STOKER_ELIMIT: one is not below STK_VIEW_CLASSES_MAX; STOKER_ENOMEM. */
int stk_view_classes_count(struct stk_view_classes *classes, const struct stk_view_making *making,
                           const stoker_dataset *dataset);
void stk_view_classes_free(struct stk_view_classes *classes); /* all zero is allowed */

/* Call visit(context, first id, labels, number of labels) for all labels in order. */
int stk_view_classes_visit(const struct stk_view_making *making, const stoker_dataset *dataset,
                           int (*visit)(void *context, uint64_t first, const int64_t *labels,
                                        uint32_t count),
                           void *context);

#endif
