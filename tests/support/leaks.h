/* leaks.h - CleanTest(), a Test() that fails if it leaks; and what unit tests include.
 *
 * Criterion reports a test as passed although LeakSanitizer found a leak at exit, so each
 * test ends by asking for the check itself. Memory from loader/base/memory/memory.h is counted
 * in every build; LeakSanitizer sees the rest in its own.
 */
#ifndef STK_TEST_LEAKS_H
#define STK_TEST_LEAKS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/fault.h"
#include "support/defaults.h"

#if defined(__SANITIZE_ADDRESS__)
#define STK_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STK_TEST_ASAN 1
#endif
#endif

#ifdef STK_TEST_ASAN
#include <sanitizer/lsan_interface.h>
#endif

/* Nothing is lost: what is still allocated can be reached. For tests of what leaks by contract. */
static inline void stk_test_check_lost(void)
{
#ifdef STK_TEST_ASAN
    cr_assert_eq(__lsan_do_recoverable_leak_check(), 0, "memory leaked");
#endif
}

static inline void stk_test_check_leaks(void)
{
    cr_assert_eq(stk_fault_live_bytes(), 0, "memory leaked");
    stk_test_check_lost();
}

#define STK_TEST_JOINED(a, b) a##b
#define STK_TEST_BODY(line)   STK_TEST_JOINED(stk_test_body_, line)

/* CleanTest(suite, name, options...) { ... } */
#define CleanTest(...)                                                                             \
    static void STK_TEST_BODY(__LINE__)(void);                                                     \
    Test(__VA_ARGS__)                                                                              \
    {                                                                                              \
        STK_TEST_BODY(__LINE__)();                                                                 \
        stk_test_check_leaks();                                                                    \
    }                                                                                              \
    static void STK_TEST_BODY(__LINE__)(void)

#endif
