/* test_gradients.c - recomputation changes no bit: gradients, loss and running
 * statistics of each plan are those of the plain plan in which no buffer shares bytes.
 */
#include "support/trainer/plan_models.h"

#include "loader/base/memory/memory.h"
#include "support/leaks.h"
#include "trainer/backend/backend.h"

enum { BATCH = 3 };

/* One pass of one plan, on memory of the heap: sanitizers see its ends. */
struct outcome {
    float *gradients, *statistics;
    struct stk_loss loss;
};

struct job {
    const struct stk_backend_ops *ops;
    const stoker_model *model;
    struct stk_backend *backend;
    float *parameters;
    float *samples;
    void *labels;
};

static void start(struct job *job, const struct stk_backend_ops *ops, const stoker_model *model)
{
    const uint64_t samples = BATCH * stk_shape_elements(model->layers[0].out);
    const struct stk_layer *loss = &model->layers[model->layer_count - 1];
    const uint64_t outputs = BATCH * stk_shape_elements(loss->in);
    *job = (struct job){ .ops = ops, .model = model };
    cr_assert_eq(ops->create(&job->backend, &(struct stk_backend_options){ .threads = 2 }, NULL),
                 STOKER_OK);
    job->parameters = stk_calloc(model->parameter_floats, sizeof(float));
    job->samples = stk_calloc(samples, sizeof(float));
    for (uint64_t i = 0; i < samples; i++)
        job->samples[i] = (float)(stk_philox(5, 0, i).word[0] >> 8) * 0x1p-23F - 1.0F;
    job->labels = stk_calloc(outputs, sizeof(int64_t)); /* class 0, or zeros for mse */
    float *ignored = stk_calloc(model->statistic_floats + 1, sizeof(float));
    stk_model_initialize(model, 3, job->parameters, ignored);
    /* Offsets and scales that are not 0 and 1, or BatchNorm's would be too easy. */
    for (uint64_t i = 0; i < model->parameter_floats; i++)
        job->parameters[i] += (float)(i % 7) * 0.01F;
    stk_free(ignored);
}

static void finish(struct job *job)
{
    stk_free(job->parameters);
    stk_free(job->samples);
    stk_free(job->labels);
    job->ops->destroy(job->backend);
}

static struct outcome run(const struct job *job, const struct stk_plan_options *options)
{
    struct stk_plan plan;
    struct stk_program *program = NULL;
    struct outcome out = { 0 };
    float *start_weights = stk_calloc(job->model->parameter_floats, sizeof(float));
    cr_assert_eq(stk_plan_make(&plan, job->model, options, NULL), STOKER_OK);
    cr_assert_eq(job->ops->load(&program, job->backend, &plan, NULL), STOKER_OK);
    out.gradients = stk_calloc(job->model->parameter_floats, sizeof(float));
    out.statistics = stk_calloc(job->model->statistic_floats + 1, sizeof(float));
    stk_model_initialize(job->model, 3, start_weights, out.statistics);
    struct stk_arenas arenas = { .parameters = job->parameters,
                                 .gradients = out.gradients,
                                 .statistics = out.statistics,
                                 .activations =
                                     job->ops->allocate(job->backend, plan.activation_bytes) };
    const struct stk_pass pass = { .samples = job->samples,
                                   .labels = job->labels,
                                   .count = BATCH,
                                   .step = 11,
                                   .seed = 77,
                                   .gradient_scale = 1.0F / (float)BATCH };
    cr_assert_not_null(arenas.activations);
    memset(arenas.activations, 0xFF, plan.activation_bytes); /* NaN: what is read was written */
    cr_assert_eq(job->ops->run(program, &arenas, &pass, &out.loss, NULL), STOKER_OK);
    job->ops->release(job->backend, arenas.activations);
    job->ops->unload(program);
    stk_plan_free(&plan);
    stk_free(start_weights);
    return out;
}

static bool has_no_nan(const float *floats, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (floats[i] != floats[i])
            return false;
    return true;
}

static void free_outcome(struct outcome *outcome)
{
    stk_free(outcome->gradients);
    stk_free(outcome->statistics);
}

static void compare(const struct job *job, const struct outcome *plain,
                    const struct stk_plan_options *options, const char *name)
{
    struct outcome other = run(job, options);
    const stoker_model *model = job->model;
    char title[128];
    (void)snprintf(title, sizeof(title), "%s on %s: batch norm again %d, segments %u, apart %d",
                   name, job->ops->name, options->recompute_batch_norm,
                   options->checkpoint_segments, options->no_reuse);
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct stk_parameter *p = &model->parameters[i];
        cr_assert_eq(memcmp(plain->gradients + p->offset, other.gradients + p->offset,
                            p->elements * sizeof(float)),
                     0, "%s: %s", title, p->name);
    }
    cr_assert_eq(
        memcmp(plain->statistics, other.statistics, model->statistic_floats * sizeof(float)), 0,
        "%s", title);
    cr_assert_eq(plain->loss.loss_sum, other.loss.loss_sum, "%s", title);
    free_outcome(&other);
}

static void check_on(const struct stk_backend_ops *ops, const stoker_model *model, const char *name)
{
    static const uint32_t segments[] = { 0, 2, 3, 6 };
    struct job job;
    start(&job, ops, model);
    const struct stk_plan_options plain_options = { .batch = BATCH,
                                                    .train = true,
                                                    .no_reuse = true };
    struct outcome plain = run(&job, &plain_options);
    cr_assert(has_no_nan(plain.gradients, model->parameter_floats), "%s", name);
    double norm = 0;
    for (uint64_t i = 0; i < model->parameter_floats; i++)
        norm += (double)plain.gradients[i] * (double)plain.gradients[i];
    cr_assert_gt(norm, 0, "%s: gradients of nothing prove nothing", name);
    for (int i = 0; i < 4; i++)
        for (int again = 0; again < 2; again++)
            compare(&job, &plain,
                    &(struct stk_plan_options){ .batch = BATCH,
                                                .train = true,
                                                .checkpoint_segments = segments[i],
                                                .exact_segments = true,
                                                .recompute_batch_norm = again == 1 },
                    name);
    free_outcome(&plain);
    finish(&job);
}

static void check(stoker_model *model, const char *name)
{
    const struct stk_backend_ops *fast = stk_backend_find("cpu");
    check_on(&stk_backend_ref, model, name);
    if (fast != NULL && fast != &stk_backend_ref)
        check_on(fast, model, name);
    stoker_model_destroy(&model);
}

CleanTest(trainer_plan_gradients, recomputation_changes_no_bit)
{
    check(stk_test_residual(), "residual");
    check(stk_test_depthwise(), "depthwise");
    check(stk_test_awkward(), "awkward");
    check(stk_test_chain(20), "chain");
}

CleanTest(trainer_plan_gradients, nor_in_random_networks)
{
    char name[32];
    for (uint64_t seed = 0; seed < 25; seed++) {
        (void)snprintf(name, sizeof(name), "random %u", (unsigned)seed);
        check(stk_test_random(5000 + seed), name);
    }
}
