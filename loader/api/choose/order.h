/* order.h - options.order: checks it, and makes what the sampler draws from. */
#ifndef STK_ORDER_H
#define STK_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/dataset/dataset.h"
#include "loader/sampler/draws.h"

/* Check options->order, which may be NULL. Returns 0, or STOKER_EINVAL or ELIMIT with *error naming
 * the member. */
int stk_order_check(const stoker_loader_options *options, const stoker_dataset *dataset,
                    stoker_error *error);

/* Returns true if the order is not a permutation: by weight, or the caller's own. Of checked
 * options. */
bool stk_order_draws(const stoker_loader_options *options, const stoker_dataset *dataset);

/* Returns true if the order is that of the data set's mix. Of checked options. */
bool stk_order_mixes(const stoker_loader_options *options, const stoker_dataset *dataset);

/* Positions in an epoch. Of checked options. */
uint64_t stk_order_length(const stoker_loader_options *options, const stoker_dataset *dataset);

/* Make what stk_order_draws() needs; all zero if nothing. *hash becomes the 24 bits that identify
 * the order in a state, 0 without options->order. Returns 0, STOKER_ENOMEM, or STOKER_EINVAL (the
 * weights). stk_alias_free() frees it. */
int stk_order_make(struct stk_draws *draws, uint32_t *hash, const stoker_loader_options *options,
                   const stoker_dataset *dataset, stoker_error *error);

#endif
