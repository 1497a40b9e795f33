/* fields.h - the fields of several data sets as those of one. */
#ifndef STK_DATASETS_VIEWS_FIELDS_H
#define STK_DATASETS_VIEWS_FIELDS_H

#include "datasets/views/view.h"

/* Check that all sources of a view have the same fields, and set view->fields: as in source 0, with the longest length, the
 * most pixels and the most classes of all. STOKER_EMISMATCH: the message names the field, and how it differs. */
int stk_view_join_fields(struct stk_view *view, const struct stk_view_making *making);

#endif
