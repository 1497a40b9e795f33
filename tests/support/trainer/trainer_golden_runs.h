/* trainer_golden_runs.h - twenty steps of two networks, and where PyTorch ends with them.
 *
 * First weights and data from the formula of make_trainer_golden.py. In double PyTorch's own losses
 * differ from those in float by up to 7e-7; here sums run in another order once more. */
#ifndef STK_TEST_TRAINER_GOLDEN_RUNS_H
#define STK_TEST_TRAINER_GOLDEN_RUNS_H

#include "plan_models.h"
#include "support/defaults.h"

#include "trainer/api/gather_arena.h"
#include "trainer/api/trainer.h"
#include "trainer/model/torch_layout.h"

#include <math.h>

#include "golden/trainer/training.h"
#include "trainer_golden.h"

enum { GOLDEN_RUNS = 4, CLASSES = 10, WEIGHTS_MAX = 2000000, PIXELS_MAX = 28 * 28 };
static const double loss_tolerance = 2e-5;
static const double weight_tolerance = 2e-4; /* Adadelta divides by small roots */

struct golden_run {
    const char *name;
    bool residual;
    stoker_optimizer optimizer;
    float learning_rate, momentum;
    const double *losses, *norms;
    const float *probes, *statistics;
};

static const struct golden_run golden_runs[GOLDEN_RUNS] = {
    { "mnist, sgd", false, STOKER_OPTIMIZER_SGD, 0.01F, 0.9F, golden_mnist_sgd_losses,
      golden_mnist_sgd_norms, golden_mnist_sgd_probes, NULL },
    { "mnist, adadelta", false, STOKER_OPTIMIZER_ADADELTA, 1.0F, 0.0F, golden_mnist_adadelta_losses,
      golden_mnist_adadelta_norms, golden_mnist_adadelta_probes, NULL },
    { "residual, sgd", true, STOKER_OPTIMIZER_SGD, 0.01F, 0.9F, golden_residual_sgd_losses,
      golden_residual_sgd_norms, golden_residual_sgd_probes, golden_residual_sgd_statistics },
    { "residual, adadelta", true, STOKER_OPTIMIZER_ADADELTA, 1.0F, 0.0F,
      golden_residual_adadelta_losses, golden_residual_adadelta_norms,
      golden_residual_adadelta_probes, golden_residual_adadelta_statistics },
};

static inline stoker_model *golden_residual(void)
{
    const stoker_conv2d conv = {
        .filters = 8, .kernel = { 3, 3 }, .padding = { 1, 1 }, .no_bias = true
    };
    stoker_model *model = stk_test_begin(8, 8, 3);
    (void)stoker_model_conv2d(model, "conv1", &conv);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_conv2d(model, "conv2", &conv);
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_add(model, "add", "relu1");
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_avg_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static float file_order[WEIGHTS_MAX];

static void golden_set_weights(stoker_trainer *trainer)
{
    const stoker_model *model = trainer->model;
    struct stk_view view;
    cr_assert_eq(stk_view_read(&view, trainer->stage[0], trainer->stage[0]->arenas.parameters,
                               trainer->memory.parameters, NULL),
                 STOKER_OK);
    for (uint32_t p = 0; p < model->parameter_count; p++) {
        const struct stk_parameter *parameter = &model->parameters[p];
        if (model->layers[parameter->layer].kind == STK_BATCH_NORM)
            continue; /* 1 and 0, as they begin */
        const uint64_t fan =
            parameter->rank > 1 ? parameter->elements / parameter->torch_shape[0] : 64;
        golden_fill(file_order, parameter->elements, 100 + p, (float)(1.0 / sqrt((double)fan)));
        stk_layout_from_file(model, parameter, file_order, view.floats + parameter->offset);
    }
    cr_assert_eq(stk_gather_store(&view, trainer, STK_ARENA_PARAMETERS, NULL), STOKER_OK);
    stk_view_close(&view);
}

static void golden_batch(stoker_batch *batch, const stoker_model *model, uint64_t step)
{
    static float images[GOLDEN_BATCH * PIXELS_MAX];
    static int64_t labels[GOLDEN_BATCH];
    const struct stk_shape shape = model->layers[0].out;
    golden_fill(images, GOLDEN_BATCH * stk_shape_elements(shape), 1000 + step, 0.5F);
    for (uint64_t i = 0; i < GOLDEN_BATCH; i++) {
        labels[i] = (int64_t)((3 * step + 7 * i) % CLASSES);
        const uint64_t x = (uint64_t)labels[i] % shape.w;
        for (uint64_t y = 0; y < shape.h; y++)
            for (uint64_t c = 0; c < shape.c; c++)
                images[((i * shape.h + y) * shape.w + x) * shape.c + c] += 1.0F;
    }
    *batch = golden_images(images, labels, GOLDEN_BATCH, shape.h, shape.w, shape.c);
}

static void golden_check_weights(const stoker_trainer *trainer, const struct golden_run *run)
{
    const stoker_model *model = trainer->model;
    struct stk_view weights;
    struct stk_view statistics;
    cr_assert_eq(stk_view_read(&weights, trainer->stage[0], trainer->stage[0]->arenas.parameters,
                               trainer->memory.parameters, NULL),
                 STOKER_OK);
    cr_assert_eq(stk_view_read(&statistics, trainer->stage[0], trainer->stage[0]->arenas.statistics,
                               trainer->memory.statistics, NULL),
                 STOKER_OK);
    for (uint32_t p = 0; p < model->parameter_count; p++) {
        const struct stk_parameter *parameter = &model->parameters[p];
        stk_layout_to_file(model, parameter, weights.floats + parameter->offset, file_order);
        double squares = 0;
        for (uint64_t i = 0; i < parameter->elements; i++)
            squares += (double)file_order[i] * (double)file_order[i];
        cr_expect_lt(fabs(sqrt(squares) - run->norms[p]), weight_tolerance * (1 + run->norms[p]),
                     "%s: norm of %s", run->name, parameter->name);
        for (uint64_t k = 0; k < GOLDEN_PROBES; k++) {
            const double here = (double)file_order[k * parameter->elements / GOLDEN_PROBES];
            const double golden = (double)run->probes[p * GOLDEN_PROBES + k];
            cr_expect_lt(fabs(here - golden), weight_tolerance, "%s: %s, probe %u: %g, not %g",
                         run->name, parameter->name, (unsigned)k, here, golden);
        }
    }
    uint64_t at = 0;
    for (uint32_t s = 0; run->statistics != NULL && s < model->statistic_count; s++)
        for (uint64_t i = 0; i < model->statistics[s].elements; i++, at++)
            cr_expect_lt(fabs((double)statistics.floats[model->statistics[s].offset + i] -
                              (double)run->statistics[at]),
                         weight_tolerance, "%s: %s[%u]", run->name, model->statistics[s].name,
                         (unsigned)i);
    stk_view_close(&statistics);
    stk_view_close(&weights);
}

static void golden_train(const struct golden_run *run, const char *backend)
{
    stoker_model *model = run->residual ? golden_residual() : stk_test_mnist_net(false);
    stoker_trainer_options options =
        stk_trainer_options(.backend = backend, .threads = 2, .batch_size = GOLDEN_BATCH,
                            .optimizer = run->optimizer, .learning_rate = run->learning_rate,
                            .momentum = run->momentum);
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_OK, "%s",
                 error.message);
    golden_set_weights(trainer);
    for (uint64_t step = 0; step < GOLDEN_TRAINING_STEPS; step++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_step found;
        golden_batch(&batch, model, step);
        cr_assert_eq(stoker_trainer_step(trainer, &batch, &found), STOKER_OK);
        cr_expect_lt(fabs(found.loss - run->losses[step]), loss_tolerance,
                     "%s on %s: loss %.9g at step %u, PyTorch has %.9g", run->name, backend,
                     found.loss, (unsigned)step, run->losses[step]);
    }
    golden_check_weights(trainer, run);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

#endif
