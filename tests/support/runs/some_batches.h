/* some_batches.h - a consumer that takes some batches, checks all, and keeps every third, also
 * beyond the life of the loader. */
#ifndef STK_TEST_SOME_BATCHES_H
#define STK_TEST_SOME_BATCHES_H

#include "support/runs/scenario.h"
#include "support/thread_check.h"

struct stk_some_batches {
    stoker_batch kept[32];
    uint32_t count;
};

static inline void stk_take_some(stoker_loader *loader, const struct stk_file_set *set,
                                 uint32_t calls, struct stk_some_batches *some)
{
    for (uint32_t i = 0; i < calls; i++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &batch, 3);
        CHECK(rc == STOKER_OK || rc == STOKER_TIMEOUT || rc == STOKER_BUSY ||
              rc == STOKER_EPOCH_END || rc == STOKER_FINISHED);
        if (rc == STOKER_OK) {
            CHECK(stk_file_set_matches(set, &batch));
            if (i % 3 == 0)
                some->kept[some->count++] = batch;
            else
                stoker_batch_release(&batch);
        }
    }
}

static inline void stk_release_some(const struct stk_file_set *set, struct stk_some_batches *some)
{
    while (some->count > 0) {
        CHECK(stk_file_set_matches(set, &some->kept[--some->count]));
        stoker_batch_release(&some->kept[some->count]);
    }
}

#endif
