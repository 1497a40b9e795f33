/* options.h - what a caller asked for, checked and completed. */
#ifndef STK_OPTIONS_H
#define STK_OPTIONS_H

#include <stoker/loader.h>

#include "kernels/transform/transform.h"
#include "loader/api/dataset.h"

/* The transforms of options that were resolved, checked against the data set, and the size that images
 * come out with. STOKER_EINVAL or ETYPE with *error telling which option. */
int stk_options_framing(struct stk_framing *framing, const stoker_loader_options *options,
                        const stoker_dataset *dataset, stoker_error *error);

/* Where the caller wants to be told why create failed; NULL = nowhere, or its struct is of no version that
 * is known: then nobody knows where in it that stands. */
stoker_error *stk_options_error(const stoker_loader_options *given);

/* Copy *given over the defaults, whatever version of the struct it is, check every field
 * against its range and the data set, and resolve zeros that do not depend on the machine
 * (world_size, scale, dtype). Returns 0, or STOKER_EINVAL, EBATCH, ETYPE, ELIMIT with *error telling
 * which option. */
int stk_options_resolve(stoker_loader_options *options, const stoker_loader_options *given,
                        const stoker_dataset *dataset, stoker_error *error);

#endif
