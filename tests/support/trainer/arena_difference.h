/* arena_difference.h - how far apart two trainers are, each on one device or on two. Without
 * Criterion, for programs that ThreadSanitizer watches use it as well. */
#ifndef STK_TEST_ARENA_DIFFERENCE_H
#define STK_TEST_ARENA_DIFFERENCE_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "trainer/api/gather_arena.h"

/* The largest difference in an arena. 0: the same bits; INFINITY: it cannot be read, or a number is
 * not finite. */
static inline double difference(const stoker_trainer *a, const stoker_trainer *b,
                                enum stk_arena which)
{
    struct stk_view va = STK_VIEW_CLOSED;
    struct stk_view vb = STK_VIEW_CLOSED;
    double largest = stk_gather_read(&va, a, which, NULL) == STOKER_OK &&
                             stk_gather_read(&vb, b, which, NULL) == STOKER_OK &&
                             va.bytes == vb.bytes
                         ? 0
                         : INFINITY;
    for (size_t i = 0; i < va.bytes / sizeof(float) && isfinite(largest); i++) {
        const double apart = fabs((double)va.floats[i] - (double)vb.floats[i]);
        largest = isfinite(apart) ? fmax(largest, apart) : INFINITY;
    }
    if (largest <= 0 && va.bytes > 0 && memcmp(va.floats, vb.floats, va.bytes) != 0)
        largest = DBL_MIN; /* -0.0 and 0.0 */
    stk_view_close(&va);
    stk_view_close(&vb);
    return largest;
}

#endif
