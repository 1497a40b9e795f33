/* plan.c - see plan.h: graph, recomputation, operations, lives, offsets. */
#include "trainer/plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/plan/arena.h"
#include "trainer/plan/graph.h"
#include "trainer/plan/operations.h"
#include "trainer/plan/precision.h"
#include "trainer/plan/recompute.h"

static int check_options(const stoker_model *model, const struct stk_plan_options *options,
                         stoker_error *error)
{
    if (model->error.code != 0)
        return stk_refuse_option(error, STOKER_EINVAL, "the model has an error: %s",
                                 model->error.message);
    if (!model->closed)
        return stk_refuse_option(error, STOKER_EINVAL, "the model has no loss");
    if (options->batch < 1 || options->batch > STK_BATCH_MAX)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "a batch of %" PRIu32 ": 1 to %d samples are allowed",
                                 options->batch, STK_BATCH_MAX);
    if (options->storage != STOKER_DTYPE_NONE && options->storage != STOKER_DTYPE_FLOAT32 &&
        !stk_is_narrow(options->storage))
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "activations are stored as float32, float16 or bfloat16, not %s",
                                 stoker_dtype_name(options->storage));
    return STOKER_OK;
}

static void clear_plan(struct stk_plan *plan)
{
    stk_free(plan->ops);
    stk_free(plan->buffers);
    *plan = (struct stk_plan){ .model = plan->model,
                               .options = plan->options,
                               .storage = plan->storage,
                               .sample_bytes = plan->sample_bytes,
                               .cut_gradient = STK_NO_BUFFER };
}

/* Writes operations, buffers and lives for that number of segments, in place of those the plan had.
 * */
static int write(struct stk_plan *plan, const struct stk_graph *graph, uint32_t segments)
{
    struct stk_plan_options options = plan->options;
    struct stk_recompute recompute;
    options.checkpoint_segments = segments;
    clear_plan(plan);
    int rc = stk_recompute_choose(&recompute, graph, &options);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_operations_write(plan, graph, &recompute);
    stk_recompute_free(&recompute);
    return rc == STOKER_OK ? stk_lives_find(plan) : rc;
}

/* The largest power of two below n, n >= 2. */
static uint32_t power_below(uint32_t n)
{
    uint32_t power = 1;
    while (2 * power < n)
        power *= 2;
    return power;
}

/* Borders cost bytes too: if most bytes are in a few layers, or with more segments than about the
 * square root of the layers, fewer segments take less memory and recompute less. */
static int write_best(struct stk_plan *plan, const struct stk_graph *graph)
{
    const struct stk_plan_options *options = &plan->options;
    uint32_t segments = options->train ? options->checkpoint_segments : 1;
    uint32_t best = segments;
    uint64_t best_bytes = UINT64_MAX;
    if (segments > graph->count)
        segments = graph->count;
    for (; segments > 1 && !options->exact_segments; segments = power_below(segments)) {
        int rc = write(plan, graph, segments);
        if (rc != STOKER_OK)
            return rc;
        if (plan->live_bytes_max <= best_bytes) {
            best_bytes = plan->live_bytes_max;
            best = segments;
        }
    }
    int rc = write(plan, graph, options->exact_segments ? segments : 1);
    if (rc == STOKER_OK && plan->live_bytes_max > best_bytes)
        rc = write(plan, graph, best);
    return rc;
}

static int make(struct stk_plan *plan)
{
    struct stk_graph graph;
    int rc = stk_graph_make(&graph, plan->model, plan->options.train, plan->storage);
    if (rc != STOKER_OK)
        return rc;
    rc = write_best(plan, &graph);
    stk_graph_free(&graph);
    return rc == STOKER_OK ? stk_arena_place(plan) : rc;
}

int stk_plan_make(struct stk_plan *plan, const stoker_model *model,
                  const struct stk_plan_options *options, stoker_error *error)
{
    memset(plan, 0, sizeof(*plan));
    int rc = check_options(model, options, error);
    if (rc != STOKER_OK)
        return rc;
    plan->model = model;
    plan->options = *options;
    plan->storage = stk_is_narrow(options->storage) ? options->storage : STOKER_DTYPE_FLOAT32;
    plan->sample_bytes =
        stk_shape_elements(model->layers[0].out) *
        stoker_dtype_bytes(model->layers[0].kind == STK_CUT ? plan->storage : STOKER_DTYPE_FLOAT32);
    rc = make(plan);
    if (rc == STOKER_OK)
        return STOKER_OK;
    stk_plan_free(plan);
    return stk_refuse_option(error, rc, "a plan for %" PRIu32 " samples at a time", options->batch);
}

void stk_plan_cut(const struct stk_plan *plan, struct stk_plan halves[2])
{
    uint32_t cut = 0;
    while (cut < plan->op_count && plan->ops[cut].kind != STK_OP_CUT)
        cut++;
    halves[0] = *plan;
    halves[0].op_count = cut;
    halves[1] = *plan;
    halves[1].ops += cut < plan->op_count ? cut + 1 : cut;
    halves[1].op_count -= (uint32_t)(halves[1].ops - plan->ops);
}

void stk_plan_free(struct stk_plan *plan)
{
    stk_free(plan->ops);
    stk_free(plan->buffers);
    memset(plan, 0, sizeof(*plan));
}
