/* form.c - see form.h. */
#include "trainer/backend/cuda/program/form.h"

#include "loader/base/error.h"
#include "trainer/backend/cuda/cudnn/choice.h"

enum { GRAPH_TEXT_BYTES = 160 };

/* A plan to be timed, with operands of its own. */
struct timed {
    const struct stk_cuda_device *device;
    struct stk_cudnn_plan *plan;
    struct stk_cuda_bound bound;
    void *workspace;
};

static int enqueue_plan(void *work, void *stream, stoker_error *error)
{
    const struct timed *const t = work;
    return stk_cudnn_plan_run(t->plan, t->bound.binding, t->bound.count, t->workspace, stream,
                              error);
}

static int no_memory(stoker_error *error)
{
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &(struct stk_place)STK_NOWHERE,
                         "no device memory for timing engines");
}

static int time_plan(void *context, struct stk_cudnn_plan *plan, double *seconds,
                     stoker_error *error)
{
    struct timed *const t = context;
    const struct stk_cuda_device *const device = t->device;
    const uint64_t bytes = stk_cudnn_plan_workspace_bytes(plan);
    t->plan = plan;
    t->workspace = bytes == 0 ? NULL : device->allocate(device->context, bytes);
    if (bytes > 0 && t->workspace == NULL)
        return no_memory(error);
    const int rc = device->time(device->context, enqueue_plan, t, seconds, error);
    if (t->workspace != NULL)
        device->release(device->context, t->workspace);
    return rc;
}

/* Allocate each tensor of the graph while its engines are timed. */
static int allocate_operands(struct timed *t, const struct stk_cudnn_graph *graph,
                             stoker_error *error)
{
    for (stk_cudnn_ref ref = 1; ref <= stk_cudnn_graph_tensors(graph); ref++) {
        const struct stk_cudnn_tensor *const d = stk_cudnn_graph_described(graph, ref);
        if (d->is_virtual)
            continue;
        void *const memory =
            t->device->allocate(t->device->context, (uint64_t)(d->n * d->h * d->w * d->c) *
                                                        stoker_dtype_bytes(d->dtype));
        if (memory == NULL)
            return no_memory(error);
        stk_cuda_bind(&t->bound, ref, memory);
    }
    return STOKER_OK;
}

static void release_operands(struct timed *t)
{
    for (uint32_t i = 0; i < t->bound.count; i++)
        t->device->release(t->device->context, t->bound.binding[i].data);
}

int stk_cuda_form_make(struct stk_cuda_form *form, const struct stk_cuda_math *math,
                       const struct stk_engine_rules *rules, enum stk_form kind,
                       const struct stk_form_shape *shape, stoker_error *error)
{
    struct stk_cuda_form made = { NULL, { 0 } };
    struct stk_cudnn_graph *graph = NULL;
    struct timed timed = { .device = &math->device };
    char text[GRAPH_TEXT_BYTES];
    (void)stk_form_text(text, sizeof(text), kind, shape, math->dtype);
    const struct stk_cudnn_choosing how = { .rules = *rules,
                                            .float32 = math->dtype == STOKER_DTYPE_FLOAT32,
                                            .cache = math->cache,
                                            .graph = text,
                                            .time = time_plan,
                                            .context = &timed };
    struct stk_engine_choice choice;
    int rc = stk_form_build(&graph, &made.operands, math->cudnn, kind, shape, math->dtype, error);
    if (rc == STOKER_OK && rules->benchmark > 0)
        rc = allocate_operands(&timed, graph, error);
    if (rc == STOKER_OK)
        rc = stk_cudnn_choose(&made.plan, &choice, graph, &how, error);
    release_operands(&timed);
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
