/* test_in_place.c - batches in the memory of the GPU: which of them a captured step reads where
 * they are, without a copy.
 */
#include "support/trainer/cuda_trainer_case.h"

/* Batches in six buffers of the GPU: the first four are read where they are, by a graph each; the
 * others are copied. */
Test(trainer_cuda_in_place, batches_on_the_gpu_are_read_where_they_are)
{
    enum { BUFFERS = 6, IN_PLACE = 4, ROUNDS = 3 };
    begin();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.accumulate = 1;
    options.metrics_interval = 1000;
    stoker_trainer *there = trainer_of(model, options);
    stoker_trainer *here = trainer_of(model, options);
    stoker_batch batches[BUFFERS];
    for (int i = 0; i < BUFFERS; i++)
        batches[i] = batch_on_device(batch_of((uint64_t)i * BATCH, BATCH));
    for (int i = 0; i < BUFFERS * ROUNDS; i++) {
        const uint64_t copies = standin_cuda_copies();
        cr_assert_eq(stoker_trainer_step(there, &batches[i % BUFFERS], NULL), STOKER_OK);
        cr_assert_eq(standin_cuda_copies() - copies, i % BUFFERS < IN_PLACE ? 0 : 2, "step %d", i);
        step(here, (uint64_t)(i % BUFFERS), BATCH);
    }
    cr_assert_eq(stoker_trainer_flush(there, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_flush(here, NULL), STOKER_OK);
    stoker_trainer_capture captured;
    stoker_trainer_get_capture(there, &captured);
    cr_assert_eq(captured.queued, 1, "the first");
    cr_assert_eq(captured.launched, BUFFERS * ROUNDS - 1);
    check_same_bits(there, here);
    stoker_trainer_destroy(&there);
    stoker_trainer_destroy(&here);
    for (int i = 0; i < BUFFERS; i++) {
        cr_assert_eq(cudaFree(batches[i].images.data), cudaSuccess);
        cr_assert_eq(cudaFree(batches[i].labels.data), cudaSuccess);
    }
    end(&model);
}
