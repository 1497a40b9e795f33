/* test_metrics.c - what a trainer on a GPU reports, and when: evaluations at their end, the reason
 * why steps could not be captured, losses at the requested interval. Runs on the stand-in.
 */
#include "support/trainer/cuda_trainer_case.h"

enum { BATCHES = 5, LOST = 700 /* cudaErrorIllegalAddress */ };

static stoker_evaluation evaluated_at_once(stoker_trainer *trainer)
{
    stoker_evaluation sum = { 0 };
    for (uint64_t i = 0; i < BATCHES; i++)
        cr_assert_eq(stoker_trainer_evaluate(trainer, batch_of(100 * i, 13), &sum), STOKER_OK);
    return sum;
}

/* 13 samples are two parts of a batch of 8: ten passes, one wait. The sums are those of one by
 * one. */
Test(trainer_cuda_telling, an_evaluation_waits_once_at_its_end)
{
    const char *const names[] = { "cuda", "ref" };
    begin();
    stoker_model *model = network();
    for (int t = 0; t < 2; t++) {
        stoker_trainer *trainer = trainer_of(model, options_of(names[t]));
        for (uint64_t i = 0; i < 4; i++)
            step(trainer, i, BATCH);
        const stoker_evaluation wanted = evaluated_at_once(trainer);
        const struct standin_cuda_host before = standin_cuda_host();
        for (uint64_t i = 0; i < BATCHES; i++)
            cr_assert_eq(stoker_trainer_evaluate(trainer, batch_of(100 * i, 13), NULL), STOKER_OK);
        const struct standin_cuda_host queued = standin_cuda_host();
        cr_assert_eq(queued.waits, before.waits);
        cr_assert_eq(queued.copies, before.copies);
        cr_assert_eq(queued.allocations, before.allocations);
        stoker_evaluation sum = { .loss_sum = 1, .correct = 2, .count = 3 };
        cr_assert_eq(stoker_trainer_evaluated(trainer, &sum), STOKER_OK);
        cr_assert_eq(standin_cuda_host().waits, queued.waits + (t == 0 ? 1 : 0));
        cr_assert_eq(sum.count, wanted.count + 3);
        cr_assert_eq(sum.correct, wanted.correct + 2);
        cr_assert_float_eq(sum.loss_sum, wanted.loss_sum + 1, 1e-9 * wanted.loss_sum);
        cr_assert_eq(stoker_trainer_evaluated(trainer, &sum), STOKER_OK); /* reported once */
        cr_assert_eq(sum.count, wanted.count + 3);
        stoker_trainer_destroy(&trainer);
    }
    end(&model);
}

/* A step between two evaluated batches takes nothing from either. */
Test(trainer_cuda_telling, training_continues_between_evaluated_batches)
{
    begin();
    stoker_model *model = network();
    stoker_trainer *trainer = trainer_of(model, options_of("cuda"));
    cr_assert_eq(stoker_trainer_evaluate(trainer, batch_of(0, BATCH), NULL), STOKER_OK);
    cr_assert_eq(step(trainer, 0, BATCH).count, BATCH);
    cr_assert_eq(stoker_trainer_evaluate(trainer, batch_of(50, 5), NULL), STOKER_OK);
    stoker_evaluation sum = { 0 };
    cr_assert_eq(stoker_trainer_evaluated(trainer, &sum), STOKER_OK);
    cr_assert_eq(sum.count, BATCH + 5);
    cr_assert_eq(step(trainer, 1, BATCH).count, BATCH);
    stoker_trainer_destroy(&trainer);
    end(&model);
}

/* Labels in host memory are refused by the call, those on the device at the end, and with them the
 * sum. */
Test(trainer_cuda_telling, labels_out_of_range_are_reported_at_the_end)
{
    begin();
    stoker_model *model = network();
    stoker_trainer *trainer = trainer_of(model, options_of("cuda"));
    stoker_evaluation sum = { 0 };
    stoker_batch batch = *batch_of(0, BATCH);
    ((int64_t *)batch.labels.data)[2] = CLASSES;
    cr_assert_eq(stoker_trainer_evaluate(trainer, &batch, NULL), STOKER_EINVAL);

    stoker_batch there = batch_on_device(&batch);
    cr_assert_eq(stoker_trainer_evaluate(trainer, &there, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_evaluated(trainer, &sum), STOKER_EINVAL);
    cr_assert_not_null(
        strstr(stoker_trainer_error(trainer)->message, "1 labels of the evaluated batches"));
    cr_assert_eq(stoker_trainer_evaluated(trainer, &sum), STOKER_OK);
    cr_assert_eq(sum.count, 0);
    cr_assert_eq(cudaFree(there.images.data), cudaSuccess);
    cr_assert_eq(cudaFree(there.labels.data), cudaSuccess);
    stoker_trainer_destroy(&trainer);
    end(&model);
}

/* The second step is the one that is recorded: each of its calls fails once. Where that hits the
 * recording, the step is queued as it is, gives what it should, and the reason is reported. */
Test(trainer_cuda_telling, a_step_that_cannot_be_recorded_says_why)
{
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.accumulate = 1;
    options.metrics_interval = 100;
    begin();
    stoker_trainer *const good = trainer_of(model, options);
    for (uint64_t i = 0; i < 4; i++)
        step(good, i, BATCH);
    uint64_t refused = 0;
    for (uint64_t nth = 1;; nth++) {
        stoker_trainer *trainer = trainer_of(model, options);
        step(trainer, 0, BATCH);
        standin_cuda_fail(nth, LOST, false);
        const int rc = stoker_trainer_step(trainer, batch_of(BATCH, BATCH), NULL);
        if (!standin_cuda_failed()) {
            standin_cuda_fail(0, 0, false);
            stoker_trainer_destroy(&trainer);
            break;
        }
        stoker_trainer_capture capture;
        stoker_trainer_get_capture(trainer, &capture);
        cr_assert_eq(capture.reason != NULL, capture.refused == 1, "call %u", (unsigned)nth);
        if (capture.refused == 1 && rc == STOKER_OK) {
            cr_assert_eq(strncmp(capture.reason, "cuda:0: ", 8), 0, "%s", capture.reason);
            cr_assert_eq(capture.launched, 0);
            cr_assert_eq(capture.queued, 2);
            step(trainer, 2, BATCH);
            step(trainer, 3, BATCH);
            stoker_trainer_get_capture(trainer, &capture);
            cr_assert_eq(capture.queued, 4); /* it is not tried again */
            check_same_bits(trainer, good);
            refused++;
        }
        stoker_trainer_destroy(&trainer);
    }
    cr_assert_gt(refused, 20);
    stoker_trainer *none = trainer_of(model, options_of("ref"));
    stoker_trainer_capture capture = { .launched = 1 };
    stoker_trainer_get_capture(none, &capture);
    cr_assert_eq(capture.launched + capture.queued + capture.refused, 0);
    stoker_trainer_get_capture(good, &capture);
    cr_assert_null(capture.reason);
    cr_assert_eq(capture.launched, 3);
    cr_assert_eq(capture.queued, 1);
    stoker_trainer_destroy(&none);
    stoker_trainer *last = good;
    stoker_trainer_destroy(&last);
    end(&model);
}

/* For a caller that learns later which device there is. */
Test(trainer_cuda_telling, how_often_can_be_said_later)
{
    begin();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("auto");
    options.accumulate = 1;
    stoker_trainer *trainer = trainer_of(model, options);
    cr_assert_eq(step(trainer, 0, BATCH).count, BATCH);
    cr_assert_eq(stoker_trainer_set_metrics_interval(trainer, 0), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_set_metrics_interval(NULL, 4), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_set_metrics_interval(trainer, (1U << 20) + 1), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_set_metrics_interval(trainer, 3), STOKER_OK);
    cr_assert_eq(step(trainer, 1, BATCH).count, 0);
    cr_assert_eq(step(trainer, 2, BATCH).count, 0);
    cr_assert_eq(step(trainer, 3, BATCH).count, 3 * BATCH);
    stoker_trainer_destroy(&trainer);
    end(&model);
}
