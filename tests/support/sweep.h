/* sweep.h - fail each allocation of a call in turn:
 *
 *   struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
 *   while (stk_sweep_next(&sweep))
 *       sweep.rc = stoker_dataset_open(&dataset, spec, NULL, &sweep.error);
 *
 * Each failure must be STOKER_ENOMEM, in the error too, and free everything. The loop ends after
 * a call that succeeds, in which nothing failed; sweep.failed then counts the failures.
 */
#ifndef STK_TEST_SWEEP_H
#define STK_TEST_SWEEP_H

#include <stoker/error.h>

#include "support/leaks.h"

struct stk_sweep {
    unsigned kinds; /* of STK_FAULT_ */
    bool silent;    /* the call reports no error */
    int rc;
    stoker_error error;
    uint64_t nth, failed;
    int64_t live;
};

static inline bool stk_sweep_next(struct stk_sweep *sweep)
{
    const bool reached = sweep->nth > 0 && stk_fault_disarm();
    if (sweep->nth == 0) {
        sweep->live = stk_fault_live_bytes();
    } else if (!reached) {
        cr_assert_eq(sweep->rc, STOKER_OK, "%s", sweep->error.message);
        return false;
    } else {
        cr_assert_eq(sweep->rc, STOKER_ENOMEM, "allocation %d: %d, %s", (int)sweep->nth, sweep->rc,
                     sweep->error.message);
        cr_assert_eq(sweep->error.code, sweep->silent ? 0 : STOKER_ENOMEM, "failure %d",
                     (int)sweep->nth);
        cr_assert_eq(stk_fault_live_bytes(), sweep->live, "failure %d leaked", (int)sweep->nth);
        cr_assert(sweep->silent || sweep->error.message[0] != '\0');
        sweep->failed++;
    }
    cr_assert_lt(++sweep->nth, 1000);
    sweep->error = (stoker_error){ .message = "" };
    stk_fault_arm(sweep->kinds, sweep->nth);
    return true;
}

#endif
