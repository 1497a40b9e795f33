/* verify.h - compare the target with the source. */
#ifndef PACK_VERIFY_H
#define PACK_VERIFY_H

#include "datasets/pack/members.h"

/* Write the spec that opens the target. Returns false if it is too long. */
bool pack_spec(const struct pack_plan *plan, char spec[PACK_SPEC_BYTES]);

/* Open the target and compare every field of its `samples` samples with the source. */
bool pack_verify(const struct pack_plan *plan, uint64_t samples, struct pack_failure *failure);

#endif
