/* form.c - see form.h. */
#include "trainer/backend/cuda/program/form.h"

#include "loader/base/error.h"
#include "trainer/backend/cuda/cudnn/choice.h"
#include "trainer/backend/cuda/device/device.h"

enum { GRAPH_TEXT_BYTES = 160 };

/* A plan to be run or timed, with operands of its own: all zeros. */
struct trial {
    struct stk_backend *backend;
    const struct stk_cudnn_graph *graph;
    struct stk_cudnn_plan *plan;
    struct stk_cuda_bound bound; /* empty until the first run */
    void *workspace;
};

static int enqueue_plan(void *work, stoker_error *error)
{
    const struct trial *const t = work;
    return stk_cudnn_plan_run(t->plan, t->bound.binding, t->bound.count, t->workspace,
                              t->backend->stream, error);
}

static void release_operands(struct trial *t)
{
    for (uint32_t i = 0; i < t->bound.count; i++)
        stk_cuda_release(t->backend, t->bound.binding[i].data);
    t->bound.count = 0;
}

/* Allocate each tensor of the graph, unless an earlier run did. False: no memory. */
static bool take_operands(struct trial *t)
{
    if (t->bound.count > 0)
        return true;
    for (stk_cudnn_ref ref = 1; ref <= stk_cudnn_graph_tensors(t->graph); ref++) {
        const struct stk_cudnn_tensor *const d = stk_cudnn_graph_described(t->graph, ref);
        if (d->is_virtual)
            continue;
        const uint64_t elements = (uint64_t)(d->n * d->h * d->w * d->c);
        void *const memory =
            stk_cuda_alloc(t->backend, elements * stoker_dtype_bytes(d->dtype), NULL);
        if (memory == NULL) {
            release_operands(t);
            return false;
        }
        stk_cuda_bind(&t->bound, ref, memory);
    }
    return true;
}

/* Memory for a run of this plan. False: there is none. */
static bool begin_run(struct trial *t, struct stk_cudnn_plan *plan)
{
    const uint64_t bytes = stk_cudnn_plan_workspace_bytes(plan);
    t->plan = plan;
    t->workspace = NULL;
    if (!take_operands(t))
        return false;
    if (bytes > 0)
        t->workspace = stk_cuda_alloc(t->backend, bytes, NULL);
    return bytes == 0 || t->workspace != NULL;
}

static void end_run(struct trial *t)
{
    if (t->workspace != NULL)
        stk_cuda_release(t->backend, t->workspace);
    t->workspace = NULL;
}

/* Without memory the plan is taken as it is: a batch of another size may come when all memory is
 * taken. */
static int run_plan(void *context, struct stk_cudnn_plan *plan, stoker_error *error)
{
    struct trial *const t = context;
    int rc = STOKER_OK;
    if (begin_run(t, plan))
        rc = stk_cuda_run_once(t->backend, enqueue_plan, t, error);
    end_run(t);
    return rc;
}

static int time_plan(void *context, struct stk_cudnn_plan *plan, double *seconds,
                     stoker_error *error)
{
    struct trial *const t = context;
    if (!begin_run(t, plan))
        return stk_refuse_option(error, STOKER_ENOMEM, "no device memory for timing engines");
    const int rc = stk_cuda_time_runs(t->backend, enqueue_plan, t, seconds, error);
    end_run(t);
    return rc;
}

int stk_cuda_form_make(struct stk_cuda_form *form, const struct stk_cuda_math *math,
                       const struct stk_engine_rules *rules, enum stk_form kind,
                       const struct stk_form_shape *shape, struct stk_engine_failures *failures,
                       stoker_error *error)
{
    struct stk_cuda_form made = { NULL, { 0 } };
    struct stk_cudnn_graph *graph = NULL;
    char text[GRAPH_TEXT_BYTES];
    (void)stk_form_text(text, sizeof(text), kind, shape, math->dtype);
    int rc = stk_form_build(&graph, &made.operands, math->cudnn, kind, shape, math->dtype, error);
    struct trial trial = { .backend = math->backend, .graph = graph };
    const struct stk_cudnn_choosing how = { .rules = *rules,
                                            .float32 = math->dtype == STOKER_DTYPE_FLOAT32,
                                            .cache = math->cache,
                                            .graph = text,
                                            .run = math->tries ? run_plan : NULL,
                                            .time = time_plan,
                                            .context = &trial,
                                            .failures = failures };
    struct stk_engine_choice choice;
    if (rc == STOKER_OK)
        rc = stk_cudnn_choose(&made.plan, &choice, graph, &how, error);
    release_operands(&trial);
    stk_cudnn_graph_destroy(&graph);
    if (rc == STOKER_OK)
        *form = made;
    return rc;
}

void stk_cuda_form_drop(struct stk_cuda_form *form)
{
    stk_cudnn_plan_destroy(&form->plan);
}

int stk_cuda_form_run(const struct stk_cuda_form *form, const struct stk_cuda_bound *bound,
                      void *workspace, void *stream, stoker_error *error)
{
    return stk_cudnn_plan_run(form->plan, bound->binding, bound->count, workspace, stream, error);
}
