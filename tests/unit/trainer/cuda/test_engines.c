/* test_engines.c - engines of cuDNN and cuBLASLt that are built and do not run. The stand-ins'
 * engines compute the same, so a trainer with replaced engines ends with the bits of one without.
 */
#include "support/trainer/cuda_trainer_case.h"

#include "support/leaks.h"
#include "support/standin_cublaslt/standin_cublaslt.h"
#include "support/standin_cudnn/standin_cudnn.h"

enum { STEPS = 4, LAST = 3, ALL = 0xff };

/* conv2 and conv3 have one shape, so that what is learned of one is known of the other. */
static stoker_model *blocks(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv1", 4, 1);
    (void)stoker_model_relu(model, "relu1");
    stk_test_conv(model, "conv2", 4, 1);
    stk_test_conv(model, "conv3", 4, 1);
    (void)stoker_model_batch_norm(model, "bn", NULL);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static stoker_trainer_options training(bool benchmark)
{
    return stk_trainer_options(.backend = "cuda", .batch_size = BATCH, .learning_rate = 0.05F,
                               .momentum = 0.9F, .benchmark = benchmark);
}

static void all_engines_run(void)
{
    standin_cudnn_reset(true);
    standin_cublaslt_reset(true);
}

static void train(stoker_trainer *trainer)
{
    for (uint64_t i = 0; i < STEPS; i++)
        step(trainer, i, i == STEPS - 1 ? LAST : BATCH);
}

static stoker_trainer *good_one(const stoker_model *model)
{
    all_engines_run();
    stoker_trainer *const good = trainer_of(model, training(false));
    train(good);
    return good;
}

static stoker_trainer_capture capture_of(const stoker_trainer *trainer)
{
    stoker_trainer_capture capture;
    stoker_trainer_get_capture(trainer, &capture);
    cr_assert_eq(capture.replacement != NULL, capture.replaced > 0);
    return capture;
}

/* Train with these engines failing; what is reported must contain both texts. */
static void check_replaced(const stoker_model *model, const stoker_trainer *good, bool benchmark,
                           const char *what, const char *instead)
{
    stoker_trainer *trainer = trainer_of(model, training(benchmark));
    train(trainer);
    check_same_bits(trainer, good);
    const stoker_trainer_capture capture = capture_of(trainer);
    cr_assert_gt(capture.replaced, 0);
    cr_assert_not_null(strstr(capture.replacement, what), "%s", capture.replacement);
    cr_assert_not_null(strstr(capture.replacement, instead), "%s", capture.replacement);
    cr_assert_gt(capture.launched, 0, "it is still captured");
    cr_assert_eq(strstr(capture.engines, " us\n") != NULL, benchmark, "%s", capture.engines);
    stoker_trainer_destroy(&trainer);
    all_engines_run();
}

CleanTest(trainer_cuda_engines, the_first_that_runs_is_taken)
{
    begin();
    stoker_model *model = blocks();
    stoker_trainer *good = good_one(model);
    cr_assert_eq(capture_of(good).replaced, 0);
    for (int benchmark = 0; benchmark < 2; benchmark++) {
        standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = 1 });
        check_replaced(model, good, benchmark,
                       "engine 10 did not run: cuDNN's stand-in: CUDNN_STATUS_EXECUTION_FAILED",
                       "engine 12 runs instead");
        standin_cublaslt_fail((struct standin_cublaslt_failing){ .algorithms = 1 });
        check_replaced(model, good, benchmark,
                       "engine 0 did not run: cuBLASLt: run: CUBLAS_STATUS_EXECUTION_FAILED",
                       "engine 1 runs instead");
    }
    stoker_trainer_destroy(&good);
    end(&model);
}

/* No engine runs bias and ReLU in one: a graph without them does, followed by a kernel. */
CleanTest(trainer_cuda_engines, a_fused_graph_that_no_engine_runs_is_taken_apart)
{
    begin();
    stoker_model *model = blocks();
    stoker_trainer *good = good_one(model);
    for (int benchmark = 0; benchmark < 2; benchmark++) {
        standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = ALL, .fused_only = true });
        check_replaced(model, good, benchmark, "engine 10 did not run", "no other engine runs");
        standin_cublaslt_fail(
            (struct standin_cublaslt_failing){ .algorithms = ALL, .fused_only = true });
        check_replaced(model, good, benchmark, "engine 0 did not run", "no other engine runs");
    }
    stoker_trainer_destroy(&good);
    end(&model);
}

CleanTest(trainer_cuda_engines, if_none_runs_create_has_the_first_cause)
{
    begin();
    stoker_model *model = blocks();
    for (int benchmark = 0; benchmark < 2; benchmark++) {
        all_engines_run();
        standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = ALL });
        expect_refused(model, training(benchmark), STOKER_EDEVICE, "engine 10 did not run");
        all_engines_run();
        standin_cublaslt_fail((struct standin_cublaslt_failing){ .algorithms = ALL });
        expect_refused(model, training(benchmark), STOKER_EDEVICE, "engine 0 did not run");
        cr_assert_eq(standin_cuda_live(), 0);
    }
    all_engines_run();
    end(&model);
}

/* After an illegal address nothing runs any more: no other engine is tried. */
CleanTest(trainer_cuda_engines, a_lost_device_is_told_apart)
{
    stoker_model *model = blocks();
    for (int benchmark = 0; benchmark < 2; benchmark++)
        for (int library = 0; library < 2; library++) {
            begin();
            all_engines_run();
            if (library == 0)
                standin_cudnn_fail(
                    (struct standin_cudnn_failing){ .candidates = ALL, .loses_device = true });
            else
                standin_cublaslt_fail(
                    (struct standin_cublaslt_failing){ .algorithms = ALL, .loses_device = true });
            expect_refused(model, training(benchmark), STOKER_EDEVICE,
                           "cuda:0 is lost, it failed with: ");
            cr_assert_eq(library == 0 ? standin_cudnn_runs() : standin_cublaslt_runs(), 1);
            standin_cuda_reset(1);
        }
    all_engines_run();
    end(&model);
}

/* What failed for one layer is not built for the next one of its shape, and what runs is not tried
 * again. */
CleanTest(trainer_cuda_engines, a_shape_is_tried_once)
{
    begin();
    stoker_model *model = blocks();
    uint64_t plans[2];
    for (int failing = 0; failing < 2; failing++) {
        all_engines_run();
        standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = failing ? 1 : 0 });
        stoker_trainer *trainer = trainer_of(model, training(false));
        plans[failing] = standin_cudnn_plans();
        stoker_trainer_destroy(&trainer);
    }
    /* Forward with and without ReLU, data and weights of one shape, forward and weights of
     * another. */
    cr_assert_eq(plans[1] - plans[0], 5, "%d", (int)(plans[1] - plans[0]));
    all_engines_run();
    end(&model);
}

/* The engines of a smaller batch are chosen when it comes. */
CleanTest(trainer_cuda_engines, those_of_a_later_batch_are_replaced_too)
{
    begin();
    stoker_model *model = blocks();
    stoker_trainer *good = good_one(model);
    stoker_trainer *trainer = trainer_of(model, training(false));
    for (uint64_t i = 0; i < STEPS - 1; i++)
        step(trainer, i, BATCH);
    cr_assert_eq(capture_of(trainer).replaced, 0);
    standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = 1 });
    standin_cublaslt_fail((struct standin_cublaslt_failing){ .algorithms = 1 });
    step(trainer, STEPS - 1, LAST);
    cr_assert_gt(capture_of(trainer).replaced, 0);
    check_same_bits(trainer, good);
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&good);
    all_engines_run();
    end(&model);
}

static stoker_trainer_options largest(uint64_t budget)
{
    stoker_trainer_options options = training(false);
    options.batch_size = STOKER_BATCH_SIZE_AUTO;
    options.memory_budget = budget;
    return options;
}

static uint64_t runs_of_create(const stoker_model *model, const stoker_trainer_options options,
                               uint32_t *batch_size)
{
    all_engines_run();
    stoker_trainer *trainer = trainer_of(model, options);
    const uint64_t runs = standin_cudnn_runs();
    *batch_size = trainer->memory.batch_size;
    stoker_trainer_destroy(&trainer);
    return runs;
}

/* Of the batches that are compared, only the one that is taken runs; also if the search saw it
 * last. */
CleanTest(trainer_cuda_engines, a_search_for_memory_runs_nothing)
{
    begin();
    stoker_model *model = blocks();
    uint32_t batch_size;
    const uint64_t searched = runs_of_create(model, largest(1 << 18), &batch_size);
    stoker_trainer_options options = training(false);
    cr_assert_gt(batch_size, BATCH);
    options.batch_size = batch_size;
    const uint64_t given = runs_of_create(model, options, &batch_size);
    options.memory_budget = 1 << 30;
    const uint64_t compared = runs_of_create(model, options, &batch_size);
    cr_assert_eq(searched, given);
    cr_assert_eq(compared, given);
    end(&model);
}

/* The engine that runs needs more workspace than the one that the search counted with. */
CleanTest(trainer_cuda_engines, replaced_engines_stay_within_the_budget)
{
    enum { BUDGET = 1 << 18, MORE = 60000 };
    begin();
    stoker_model *model = blocks();
    all_engines_run();
    stoker_trainer *good = trainer_of(model, largest(BUDGET));
    standin_cudnn_fail((struct standin_cudnn_failing){ .candidates = 1, .more_bytes = MORE });
    stoker_trainer *trainer = trainer_of(model, largest(BUDGET));
    cr_assert_gt(capture_of(trainer).replaced, 0);
    cr_assert_gt(trainer->memory.workspace, good->memory.workspace + MORE);
    cr_assert_leq(trainer->memory.peak, BUDGET);
    cr_assert_lt(trainer->memory.batch_size, good->memory.batch_size);
    step(trainer, 0, BATCH);
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&good);
    all_engines_run();
    end(&model);
}
