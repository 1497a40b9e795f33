/* leaks.h - make a leak fail the test that leaked.
 *
 * Criterion reports a test as passed although LeakSanitizer found a leak at exit, so each
 * test ends by asking for the check itself. What comes from loader/base/memory.h is counted
 * in every build; LeakSanitizer, where it is, sees the rest.
 */
#ifndef STK_TEST_LEAKS_H
#define STK_TEST_LEAKS_H

#include <criterion/criterion.h>

#include "loader/base/fault.h"

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

#endif
