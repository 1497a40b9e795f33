/* rewritten_batch.h - a batch in memory that is rewritten for each pass, also while the pass before
 * is still under way: a trainer that reads on after its step() races with it.
 */
#ifndef STK_TEST_REWRITTEN_BATCH_H
#define STK_TEST_REWRITTEN_BATCH_H

#include <stoker/trainer.h>

enum { STK_REWRITTEN_ROWS = 6, STK_REWRITTEN_INPUTS = 12 };

struct stk_rewritten_batch {
    float samples[STK_REWRITTEN_ROWS * STK_REWRITTEN_INPUTS];
    int64_t labels[STK_REWRITTEN_ROWS];
};

/* The batch of a pass: samples of 0..1, labels below `classes`. */
static inline stoker_batch stk_rewrite_batch(struct stk_rewritten_batch *batch, uint32_t pass,
                                             uint32_t classes)
{
    for (uint32_t i = 0; i < STK_REWRITTEN_ROWS * STK_REWRITTEN_INPUTS; i++)
        batch->samples[i] = (float)((pass * 31 + i * 7) % 17) / 17.0F;
    for (uint32_t i = 0; i < STK_REWRITTEN_ROWS; i++)
        batch->labels[i] = (pass + i) % classes;
    return (stoker_batch){
        .struct_size = sizeof(stoker_batch),
        .images = { .data = batch->samples,
                    .dtype = STOKER_DTYPE_FLOAT32,
                    .rank = 2,
                    .shape = { STK_REWRITTEN_ROWS, STK_REWRITTEN_INPUTS } },
        .labels = { .data = batch->labels,
                    .dtype = STOKER_DTYPE_INT64,
                    .rank = 1,
                    .shape = { STK_REWRITTEN_ROWS } },
        .count = STK_REWRITTEN_ROWS,
    };
}

#endif
