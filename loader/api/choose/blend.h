/* blend.h - checks options.blend, and plans what is mixed in a batch and where its fields lie. */
#ifndef STK_API_MIXING_H
#define STK_API_MIXING_H

#include "loader/api/loader.h"

/* Check the numbers. Returns 0, or STOKER_EINVAL with *error naming the option. */
int stk_blend_check(const stoker_blend *mixing, stoker_error *error);

/* After the loader's outputs and rows are planned. Returns 0; STOKER_ENOMEM; or EINVAL, ETYPE or
 * ENOTSUP if the fields cannot be mixed as asked, with *error saying why. Leaves a plan that is not
 * on if nothing is asked for. */
int stk_blend_plan(struct stk_blend_plan *plan, const stoker_loader *loader, stoker_error *error);

#endif
