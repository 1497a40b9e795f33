/* plain_assert.h - the words of Criterion that shared headers use, for plain programs: what is
 * asserted ends the program, a failed expectation is printed and counted.
 */
#ifndef STK_TEST_PLAIN_ASSERT_H
#define STK_TEST_PLAIN_ASSERT_H

#include <stdarg.h>

#include "thread_check.h"

/* Expectations that did not hold, one for each program. */
static inline uint32_t *stk_plain_failures(void)
{
    static uint32_t failures;
    return &failures;
}

__attribute__((format(printf, 3, 4))) static inline void stk_plain_unexpected(const char *file,
                                                                              int line,
                                                                              const char *format,
                                                                              ...)
{
    va_list list;
    va_start(list, format);
    printf("FAILED %s:%d: ", file, line);
    vprintf(format, list);
    printf("\n");
    va_end(list);
    ++*stk_plain_failures();
}

#define EXPECT(holds, ...)                                                                         \
    ((holds) ? (void)0 : stk_plain_unexpected(__FILE__, __LINE__, __VA_ARGS__))

/* The message may be left out: "" follows it. */
#define STK_PLAIN_EQ(a, b, ...) CHECK((a) == (b))
#define STK_PLAIN_NULL(a, ...)  CHECK((a) == NULL)
#define STK_PLAIN_LT(a, b, ...) CHECK((a) < (b))
#define STK_PLAIN_GE(a, b, ...) CHECK((a) >= (b))
#define STK_PLAIN_LE(a, b, ...) CHECK((a) <= (b))
#define STK_PLAIN_TRUE(a, ...)  CHECK(a)
#define cr_assert(...)          STK_PLAIN_TRUE(__VA_ARGS__, "")
#define cr_assert_eq(...)       STK_PLAIN_EQ(__VA_ARGS__, "")
#define cr_assert_lt(...)       STK_PLAIN_LT(__VA_ARGS__, "")
#define cr_assert_geq(...)      STK_PLAIN_GE(__VA_ARGS__, "")
#define cr_assert_leq(...)      STK_PLAIN_LE(__VA_ARGS__, "")
#define cr_assert_null(...)     STK_PLAIN_NULL(__VA_ARGS__, "")
#define cr_assert_not_null(...) STK_PLAIN_TRUE(__VA_ARGS__, "")
#define cr_expect_lt(a, b, ...) EXPECT((a) < (b), __VA_ARGS__)

#endif
