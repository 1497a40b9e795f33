/* order.h - options.order: checks it, and makes the sampler and what it needs. */
#ifndef STK_ORDER_H
#define STK_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/dataset/dataset.h"

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

/* Returns true if samples come in a random order: with WINDOW, whatever options.shuffle is. */
bool stk_order_shuffles(const stoker_loader_options *options);

/* Make loader->pipeline.sampler, and the draws, the mix or the windows that it needs, of resolved
 * options. loader->order_hash becomes the 24 bits that identify the order in a state, 0 if it
 * follows from options.shuffle alone. Returns 0, STOKER_ENOMEM, ELIMIT (blocks) or EINVAL (the
 * weights). stk_loader_free() frees all of it. */
int stk_order_make(stoker_loader *loader, stoker_error *error);

#endif
