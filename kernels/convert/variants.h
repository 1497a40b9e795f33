/* variants.h - the converters of this build, one variant per instruction set.
 *
 *   baseline   plain C             any CPU
 *   avx2       AVX2, FMA, F16C     x86-64 since 2013
 *   avx512     AVX-512 F, BW, VL   x86-64 servers since 2017
 *   neon       NEON                any 64-bit ARM
 *
 * All give the same bits. A plan takes the best one that the CPU can run; the tests run each.
 */
#ifndef STK_KERNELS_CONVERT_VARIANTS_H
#define STK_KERNELS_CONVERT_VARIANTS_H

#include "kernels/convert/convert.h"
#include <stdbool.h>

struct stk_convert_variant {
    const char *name;
    bool (*runs_here)(void);
    /* Returns the function for the plan's types and layout; never NULL for a valid plan. */
    stk_convert_rows_fn *(*choose)(const struct stk_convert_plan *plan);
};

enum { STK_CONVERT_VARIANTS_MAX = 3 };

/* Best first; the last is the baseline. Ends with a variant whose name is NULL. */
extern const struct stk_convert_variant stk_convert_variants[STK_CONVERT_VARIANTS_MAX + 1];

/* Return true if this CPU can run the variant. */
bool stk_convert_runs_anywhere(void);
bool stk_convert_runs_on_avx2(void);
bool stk_convert_runs_on_avx512(void);

stk_convert_rows_fn *stk_convert_choose_baseline(const struct stk_convert_plan *plan);
stk_convert_rows_fn *stk_convert_choose_avx2(const struct stk_convert_plan *plan);
stk_convert_rows_fn *stk_convert_choose_avx512(const struct stk_convert_plan *plan);
stk_convert_rows_fn *stk_convert_choose_neon(const struct stk_convert_plan *plan);

#endif
