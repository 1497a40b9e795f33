/* kept_batches.h - every batch of an epoch, held until its end and compared with a run that holds
 * none.
 *
 * On the stand-in's GPU each batch is hashed by a function on a stream that waited for it. Static
 * functions, without Criterion: the programs for ThreadSanitizer use them as well.
 */
#ifndef STK_TEST_KEPT_BATCHES_H
#define STK_TEST_KEPT_BATCHES_H

#include "support/gpu/cuda_run.h"

enum { STK_KEPT_MAX = 256 };

struct stk_kept_run {
    int32_t timeout_ms; /* for each call */
    int rc;             /* what ended it */
    uint32_t count;
    stoker_batch batches[STK_KEPT_MAX];
    uint64_t hashes[STK_KEPT_MAX];
};

/* Take batches and release none, until next returns something else than a batch or the end of an
 * epoch. */
static inline void stk_keep_all(stoker_loader *loader, struct stk_kept_run *run, uint32_t most)
{
    run->rc = STOKER_OK;
    while (run->count < most && run->count < STK_KEPT_MAX) {
        run->batches[run->count] = (stoker_batch)STOKER_BATCH_INIT;
        run->rc = stoker_loader_next(loader, &run->batches[run->count], run->timeout_ms);
        if (run->rc == STOKER_EPOCH_END || run->rc == STOKER_TIMEOUT)
            continue;
        if (run->rc != STOKER_OK)
            return;
        run->count++;
    }
}

/* Hash all that are held, now. */
static inline void stk_hash_kept(struct stk_kept_run *run, struct stk_cuda_consumer *consumer)
{
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->batches[i].device != STOKER_DEVICE_CUDA) {
            run->hashes[i] = stk_batch_hash(&run->batches[i]);
        } else {
            (void)stoker_batch_wait_on(&run->batches[i], consumer->stream);
            stk_cuda_launch(consumer, &run->batches[i], &run->hashes[i]);
        }
    }
    if (consumer != NULL)
        stk_cuda_consumer_wait(consumer);
}

/* No two of them share memory. */
static inline bool stk_kept_are_apart(const struct stk_kept_run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (run->batches[i].images.data == run->batches[k].images.data ||
                run->batches[i].ids == run->batches[k].ids)
                return false;
    return true;
}

#endif
