/* verify.h - compare the target with the source. */
#ifndef PACK_VERIFY_H
#define PACK_VERIFY_H

#include "datasets/pack/target.h"

enum pack_verdict { PACK_SAME, PACK_DIFFERENT, PACK_UNREADABLE };

/* Open the target and compare each label and row with the source's; with `lossy` a row need only
 * decode. The failure describes the first difference. */
enum pack_verdict pack_verify(const struct pack_plan *plan, stoker_loader *source, bool lossy,
                              struct pack_failure *failure);

#endif
