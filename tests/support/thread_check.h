/* thread_check.h - for the plain programs that ThreadSanitizer watches: what is not so ends
 * the program with the line on which it was found.
 */
#ifndef STK_TEST_THREAD_CHECK_H
#define STK_TEST_THREAD_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "support/defaults.h"

static inline void stk_check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : stk_check_failed(__FILE__, __LINE__, #holds))

#if defined(__SANITIZE_THREAD__)
#define STK_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STK_TEST_TSAN 1
#endif
#endif

#ifdef STK_TEST_TSAN
/* ThreadSanitizer does not see the atomic operations inside oneDNN that order its locks and
 * allocations. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libdnnl.so";
}
#endif

/* Returns true if a program started at start_ns may begin another round: 4 seconds in all where
 * ThreadSanitizer watches, 10 under an emulator, else 1. */
static inline int stk_time_left(uint64_t start_ns)
{
#if defined(STK_TEST_TSAN)
    const uint64_t limit_ns = UINT64_C(4000000000);
#elif defined(STOKER_TEST_EMULATED)
    const uint64_t limit_ns = UINT64_C(10000000000);
#else
    const uint64_t limit_ns = UINT64_C(1000000000);
#endif
    return stk_now_ns() - start_ns < limit_ns;
}

#endif
