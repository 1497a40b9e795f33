/* slices.h - the parts of the gradient arena in the order in which a backward pass completes them,
 * so that ranks can sum one part while the pass still computes the others.
 *
 *   arena   | conv1 | conv2 |            fc1            | fc2 |
 *   slices  |       3       |    0    |    1    |     2       |      complete after conv1 | fc1 | fc1 | fc1
 *
 * Backward passes go from the end of the arena to its start. Neighbors that are small are one
 * slice, complete when the last of them is; what is large is divided. */
#ifndef STK_TRAINER_SLICES_H
#define STK_TRAINER_SLICES_H

#include "trainer/plan/plan.h"

/* One sum of a slice costs about as much as a few thousand floats of it; sums of whole arenas begin
 * late. */
enum { STK_SLICE_FLOATS_MIN = 1 << 15, STK_SLICE_FLOATS_MAX = 1 << 18 };

struct stk_slice {
    uint64_t first, count; /* floats of the arena; first is a multiple of STK_ALIGN_FLOATS */
    uint32_t op;           /* no operation of the plan after this one writes to it */
};

struct stk_slices {
    struct stk_slice *slices; /* ascending by op; every float of the arena is in one */
    uint32_t count;
};

/* floats_min: a slice that has fewer continues with the next parameter, unless there is none.
 * floats_max: most floats of a slice, > 0, a multiple of STK_ALIGN_FLOATS. The same plan gives the
 * same slices. On success the caller frees them; on failure *out is all zero. STOKER_ENOMEM. */
int stk_slices_make(struct stk_slices *out, const struct stk_plan *plan, uint64_t floats_min,
                    uint64_t floats_max, stoker_error *error);
void stk_slices_free(struct stk_slices *slices); /* all zero is allowed */

#endif
