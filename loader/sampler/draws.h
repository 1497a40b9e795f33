/* draws.h - orders that are no permutation: ids drawn by weight or alike, and the caller's own
 * order.
 *
 *   position --(keyed by seed, epoch)--> sample id      any id any number of times
 *
 * Threads   Immutable once set: any number of threads.
 */
#ifndef STK_SAMPLER_DRAWS_H
#define STK_SAMPLER_DRAWS_H

#include <stdint.h>
#include <stoker/error.h>

#include "loader/sampler/alias.h"

struct stk_draws {
    struct stk_alias alias; /* used if `own` is NULL; without columns all ids are alike */
    /* The caller's order: stoker_order.ids. */
    int (*own)(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
               uint64_t *ids, stoker_error *error);
    void *self;
};

/* ids[i] = the sample at position first + i * stride of an epoch, for i < n, below `count`. Returns
 * 0, or an error of the caller's order with *error filled in, and all ids are 0. */
int stk_draws_ids(const struct stk_draws *draws, uint64_t count, uint64_t seed, uint64_t epoch,
                  uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids, stoker_error *error);

#endif
