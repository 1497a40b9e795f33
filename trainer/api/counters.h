/* counters.h - stk_progress as an array of 64-bit numbers in a file. */
#ifndef STK_TRAINER_COUNTERS_H
#define STK_TRAINER_COUNTERS_H

#include "trainer/api/trainer.h"

enum {
    STK_COUNTER_VERSION,
    STK_COUNTER_UPDATES,
    STK_COUNTER_GROUPS,
    STK_COUNTER_PASSES,
    STK_COUNTER_GROUP_PASSES, /* as one rank would have made them: a batch each */
    STK_COUNTER_GROUP_SAMPLES,
    STK_COUNTER_SEED,
    STK_COUNTER_LOSS_SCALE, /* the bits of the float */
    STK_COUNTER_GOOD_UPDATES,
    STK_COUNTERS
};

enum { STK_COUNTERS_VERSION = 1 };

struct stk_counters {
    uint64_t value[STK_COUNTERS];
};

struct stk_counters stk_counters_write(const struct stk_progress *progress);

/* Returns NULL, or what is wrong with them. group_passes is that of one rank. *progress keeps
 * loss_scale.dynamic, and its loss scale unless that is dynamic. */
const char *stk_counters_read(const struct stk_counters *counters, struct stk_progress *progress);

#endif
