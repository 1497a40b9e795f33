/* length_choice.h - checks options.batch_values_max, and starts the planning of batches by length.
 */
#ifndef STK_LENGTH_CHOICE_H
#define STK_LENGTH_CHOICE_H

#include "loader/api/loader.h"

/* Check batch_values_max and batch_window against the other options and the data set. Returns 0 or
 * STOKER_EINVAL with *error naming the option. */
int stk_length_choice_check(const stoker_loader_options *options, const stoker_dataset *dataset,
                            stoker_error *error);

/* The 24 bits that identify the order in a state, with batch_values_max: `order_hash`, and how
 * batches are cut. */
uint32_t stk_length_choice_hash(const stoker_loader *loader, uint32_t order_hash);

/* Plan the first batch, if batch_values_max is set; the outputs and the sampler are made.
 * stk_length_choice_stop() frees what it took, in any case. */
int stk_length_choice_start(stoker_loader *loader, uint64_t length, uint64_t first_epoch,
                            uint64_t first_position, stoker_error *error);
void stk_length_choice_stop(stoker_loader *loader);

#endif
