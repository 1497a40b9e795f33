/* networks.h - the network of each preset. */
#ifndef STK_PROGRAMS_NETWORKS_H
#define STK_PROGRAMS_NETWORKS_H

#include <stoker/dataset.h>
#include <stoker/model.h>

#include "trainer/programs/arguments.h"

/* Builds the preset's network for such samples. On success the caller owns *out; on failure it is
 * untouched, and *error names the layer that does not fit. */
int network_build(stoker_model **out, const struct arguments *arguments,
                  const stoker_dataset_info *samples, stoker_error *error);

#endif
