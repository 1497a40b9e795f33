/* some_batches.h - a consumer that takes some batches, keeps every third, and checks all: before a
 * loader goes at any moment. */
#ifndef STK_TEST_SOME_BATCHES_H
#define STK_TEST_SOME_BATCHES_H

#include "support/scenario.h"
#include "support/thread_check.h"

static inline void stk_take_some(stoker_loader *loader, const struct stk_file_set *set,
                                 uint32_t calls)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    for (uint32_t i = 0; i < calls; i++) {
        const int rc = stoker_loader_next(loader, &batch, 3);
        CHECK(rc == STOKER_OK || rc == STOKER_TIMEOUT || rc == STOKER_BUSY ||
              rc == STOKER_EPOCH_END || rc == STOKER_FINISHED);
        if (rc == STOKER_OK) {
            CHECK(stk_file_set_matches(set, &batch));
            if (i % 3 != 0)
                stoker_batch_release(&batch);
            batch = (stoker_batch)STOKER_BATCH_INIT; /* every third one stays lent */
        }
    }
}

#endif
