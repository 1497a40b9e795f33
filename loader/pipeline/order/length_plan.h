/* length_plan.h - cuts a window of samples into batches of a bounded number of values: a pure
 * function.
 *
 *   padded   samples by falling length | 9 9 8 | 8 7 7 | 3 3 2 2 2 | ...   rows of a batch are about as long as the longest;
 *                                         2       0        1               batches are then put in a random order
 *   packed   samples in their order    | 3 9 | 2 8 1 | 7 2 ...             no padding, so the order stays
 *
 * A padded batch has rows x max(row_min, the longest rounded up) values, a packed one the sum of
 * its lengths.
 */
#ifndef STK_PIPELINE_LENGTH_PLAN_H
#define STK_PIPELINE_LENGTH_PLAN_H

#include <stdint.h>

struct stk_length_rule {
    uint64_t values_max; /* in a batch; at least what the longest sample takes */
    uint32_t rows_max;   /* in a batch, >= 1 */
    uint64_t multiple;   /* rows are padded to a multiple of it, >= 1; 0 = packed */
    uint64_t row_min;    /* values of a padded row, even if all samples are shorter or empty */
};

/* Values that `rows` rows take whose lengths add up to `sum`, and of which the longest has
 * `longest`. */
uint64_t stk_length_values(const struct stk_length_rule *rule, uint64_t rows, uint64_t longest,
                           uint64_t sum);

/* A batch: the samples order[first..first + rows). */
struct stk_length_cut {
    uint32_t first;
    uint32_t rows;
};

/* Plan `count` >= 1 samples: order[0..count) becomes their numbers, and cuts[0..batches) the
 * batches, in the order in which they come, which `key` decides. There is room for `count` numbers
 * or cuts in each, and in `room`. Returns the number of batches. */
uint32_t stk_length_plan(const struct stk_length_rule *rule, uint64_t key, const uint64_t *lengths,
                         uint32_t count, uint32_t *order, struct stk_length_cut *cuts,
                         uint32_t *room);

#endif
