/* test_watch.c - gradients that a back end reports as complete are those of the whole pass, and
 * nothing in the pass touches them again: they may be summed over ranks at once.
 *
 * Method: as soon as a slice is reported, it is copied and overwritten, as the sum over ranks does.
 * In the end the copies are the gradients of a pass that nobody watches, bit for bit, and what was
 * written instead is still there. */
#define STK_TEST_PLAIN
#include "support/trainer/plan_models.h"

#include "loader/base/memory/memory.h"
#include "support/thread_check.h"
#include "trainer/backend/backend.h"

enum { BATCH = 7 };

static const float overwritten = -12345.0F;

struct bench {
    const struct stk_backend_ops *ops;
    struct stk_backend *backend;
    struct stk_plan plan;
    struct stk_program *program;
    struct stk_arenas arenas;
    float *samples;
    void *labels;
};

struct watching {
    const struct stk_slices *slices;
    float *gradients, *copy;
    uint32_t reported, polls, polls_after_first;
};

static void ready(void *context, uint32_t index)
{
    struct watching *const w = context;
    const struct stk_slice *const slice = &w->slices->slices[index];
    CHECK(index == w->reported++);
    memcpy(w->copy + slice->first, w->gradients + slice->first, slice->count * sizeof(float));
    for (uint64_t i = 0; i < slice->count; i++)
        w->gradients[slice->first + i] = overwritten;
}

static void poll(void *context)
{
    struct watching *const w = context;
    w->polls++;
    w->polls_after_first += w->reported > 0 && w->reported < w->slices->count ? 1 : 0;
}

static float *floats_of(uint64_t count)
{
    float *const floats = stk_calloc(count + 1, sizeof(*floats));
    CHECK(floats != NULL);
    return floats;
}

static void begin(struct bench *bench, const struct stk_backend_ops *ops, uint32_t threads,
                  bool plain, const stoker_model *model)
{
    const struct stk_plan_options options = { .batch = BATCH,
                                              .train = true,
                                              .recompute_batch_norm = true };
    const uint64_t samples = BATCH * stk_shape_elements(model->layers[0].out);
    const struct stk_layer *const loss = &model->layers[model->layer_count - 1];
    *bench = (struct bench){ .ops = ops };
    CHECK(stk_plan_make(&bench->plan, model, &options, NULL) == STOKER_OK);
    CHECK(ops->create(&bench->backend,
                      &(struct stk_backend_options){ .threads = threads, .plain = plain },
                      NULL) == STOKER_OK);
    CHECK(ops->load(&bench->program, bench->backend, &bench->plan, NULL) == STOKER_OK);
    bench->arenas = (struct stk_arenas){ .parameters = floats_of(model->parameter_floats),
                                         .gradients = floats_of(model->parameter_floats),
                                         .statistics = floats_of(model->statistic_floats),
                                         .activations = ops->allocate(
                                             bench->backend, bench->plan.activation_bytes) };
    stk_model_initialize(model, 3, bench->arenas.parameters, bench->arenas.statistics);
    bench->samples = floats_of(samples);
    for (uint64_t i = 0; i < samples; i++)
        bench->samples[i] = (float)(stk_philox(5, 0, i).word[0] >> 8) * 0x1p-23F - 1.0F;
    bench->labels = stk_calloc(BATCH * stk_shape_elements(loss->in) + 1, sizeof(int64_t));
}

static void end(struct bench *bench)
{
    bench->ops->release(bench->backend, bench->arenas.activations);
    bench->ops->unload(bench->program);
    bench->ops->destroy(bench->backend);
    stk_plan_free(&bench->plan);
    stk_free(bench->arenas.parameters);
    stk_free(bench->arenas.gradients);
    stk_free(bench->arenas.statistics);
    stk_free(bench->samples);
    stk_free(bench->labels);
}

static void run(const struct bench *bench, const struct stk_pass_watch *watch)
{
    struct stk_loss loss;
    const struct stk_pass pass = { .samples = bench->samples,
                                   .labels = bench->labels,
                                   .count = BATCH,
                                   .seed = 77,
                                   .gradient_scale = 1,
                                   .watch = watch };
    memset(bench->arenas.gradients, 0, bench->plan.model->parameter_floats * sizeof(float));
    CHECK(bench->ops->run(bench->program, &bench->arenas, &pass, &loss, NULL) == STOKER_OK);
}

static void check_on(const struct stk_backend_ops *ops, uint32_t threads, bool plain,
                     const stoker_model *model, bool early)
{
    struct bench bench;
    struct stk_slices slices;
    begin(&bench, ops, threads, plain, model);
    const uint64_t floats = model->parameter_floats;
    struct watching watching = { .slices = &slices,
                                 .gradients = bench.arenas.gradients,
                                 .copy = floats_of(floats) };
    const struct stk_pass_watch watch = {
        .slices = &slices, .ready = ready, .poll = poll, .context = &watching
    };
    float *const expected = floats_of(floats);
    run(&bench, NULL);
    memcpy(expected, bench.arenas.gradients, floats * sizeof(float));
    CHECK(stk_slices_make(&slices, &bench.plan, 64, 1024, NULL) == STOKER_OK);
    run(&bench, &watch);
    CHECK(watching.reported == slices.count);
    CHECK(watching.polls > 0);
    CHECK(!early || watching.polls_after_first > 0);
    CHECK(memcmp(watching.copy, expected, floats * sizeof(float)) == 0);
    for (uint64_t i = 0; i < floats; i++)
        CHECK(memcmp(&bench.arenas.gradients[i], &overwritten, sizeof(float)) == 0);
    stk_slices_free(&slices);
    stk_free(watching.copy);
    stk_free(expected);
    end(&bench);
}

/* early: some gradients are complete long before the pass ends, on each back end. */
static void check(stoker_model *model, bool early)
{
    check_on(&stk_backend_ref, 1, false, model, early);
    for (uint32_t threads = 1; threads <= 3; threads++)
        check_on(&stk_backend_cpu, threads, false, model, early);
    check_on(&stk_backend_cpu, 2, true, model, early);
    stoker_model_destroy(&model);
}

int main(void)
{
    check(stk_test_chain(4), true);
    check(stk_test_residual(), true);
    check(stk_test_depthwise(), true);
    check(stk_test_awkward(), true);
    for (uint64_t seed = 1; seed <= 6; seed++)
        check(stk_test_random(seed), false);
    return 0;
}
