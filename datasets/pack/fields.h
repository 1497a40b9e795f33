/* fields.h - pack samples of several fields, into shards of version 2, an archive, or a folder per field. */
#ifndef PACK_FIELDS_H
#define PACK_FIELDS_H

#include <stdbool.h>

#include "datasets/pack/fields_members.h"
#include "datasets/pack/target.h"

/* Returns true if version 1, an array and a label, cannot hold the source; with --codec keep, images of several sizes
 * neither. */
bool pack_fields_needed(const struct pack_plan *plan);

/* Pack with `threads` threads that read and encode, and fill in the tally. Continues after the shards of an earlier run.
 * Samples that cannot be read are reported on standard error and left out. */
bool pack_fields_run(const struct pack_plan *plan, uint32_t threads, struct pack_tally *tally,
                     struct pack_failure *failure);

/* Write the spec that opens the target. False: it is too long. */
bool pack_fields_spec(const struct pack_plan *plan, char spec[PACK_SPEC_BYTES]);

/* Compare every field of the samples in the target with the source. */
bool pack_fields_verify(const struct pack_plan *plan, uint64_t samples,
                        struct pack_failure *failure);

#endif
