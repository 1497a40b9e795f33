/* options.h - checks and completes a caller's options. */
#ifndef STK_OPTIONS_H
#define STK_OPTIONS_H

#include <stoker/loader.h>

#include "kernels/transform/transform.h"
#include "loader/dataset/dataset.h"

/* Set *framing to the transforms of resolved options and the resulting image size, checked against
 * the data set. Returns 0, or STOKER_EINVAL or ETYPE with *error naming the option. */
int stk_options_framing(struct stk_framing *framing, const stoker_loader_options *options,
                        const stoker_dataset *dataset, stoker_error *error);

/* Copy *given, of any known version of the struct, over the defaults; check every field against its
 * range and the data set; resolve dtype and scale. In the result prefetch_batches and read_depth
 * are 0 if they are to be chosen, and epochs is 0 if there is no end. Returns 0, or STOKER_EINVAL,
 * EBATCH, ETYPE, ELIMIT with *error naming the option. */
int stk_options_resolve(stoker_loader_options *options, const stoker_loader_options *given,
                        const stoker_dataset *dataset, stoker_error *error);

#endif
