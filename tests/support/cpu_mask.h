/* cpu_mask.h - show the library fewer features than this CPU has.
 *
 * Every program that links stoker_testing reads STOKER_TEST_CPU when it starts: the name of a
 * level, below. Unset shows all.
 */
#ifndef STK_TEST_CPU_MASK_H
#define STK_TEST_CPU_MASK_H

#include "loader/base/cpu/cpu_features.h"

/* From the least to the most; the last shows everything and ends with a NULL name. */
struct stk_cpu_level {
    const char *name;
    uint32_t features;
};
extern const struct stk_cpu_level stk_cpu_levels[];

#endif
