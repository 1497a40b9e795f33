/* norm.c - see norm.h.
 *
 *   workspace   │ float32: gradients of gamma │ of beta │ cuDNN's plan │ */
#include "trainer/backend/cuda/program/norm.h"

#include <assert.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda/program/form.h"

enum { PART_BYTES = 256 };

struct stk_cuda_norm {
    const struct stk_cuda_math *math;
    uint32_t channels;
    uint64_t part_bytes; /* of the gradients of gamma, or of beta */
    struct stk_cuda_form form;
};

int stk_cuda_norm_create(struct stk_cuda_norm **out, const struct stk_cuda_math *math,
                         const struct stk_layer *layer, bool relu, uint32_t count,
                         stoker_error *error)
{
    assert(layer->kind == STK_BATCH_NORM);
    assert(count >= 1);
    struct stk_cuda_norm *norm = stk_calloc(1, sizeof(*norm));
    if (norm == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                             &(struct stk_place)STK_NOWHERE, "a BatchNorm");
    norm->math = math;
    norm->channels = layer->in.c;
    norm->part_bytes = (layer->in.c * sizeof(float) + PART_BYTES - 1) / PART_BYTES * PART_BYTES;
    const struct stk_form_shape shape = {
        .n = count, .h = layer->in.h, .w = layer->in.w, .c = layer->in.c, .groups = 1
    };
    struct stk_engine_rules rules = math->rules;
    rules.workspace_bytes_max -= rules.workspace_bytes_max < 2 * norm->part_bytes
                                     ? rules.workspace_bytes_max
                                     : 2 * norm->part_bytes;
    const int rc = stk_cuda_form_make(&norm->form, math, &rules,
                                      relu ? STK_FORM_NORM_RELU_BACKWARD : STK_FORM_NORM_BACKWARD,
                                      &shape, error);
    if (rc != STOKER_OK) {
        stk_cuda_norm_destroy(&norm);
        return rc;
    }
    *out = norm;
    return STOKER_OK;
}

void stk_cuda_norm_destroy(struct stk_cuda_norm **norm)
{
    if (*norm == NULL)
        return;
    stk_cuda_form_drop(&(*norm)->form);
    stk_free(*norm);
    *norm = NULL;
}

uint64_t stk_cuda_norm_workspace_bytes(const struct stk_cuda_norm *norm)
{
    return 2 * norm->part_bytes + stk_cudnn_plan_workspace_bytes(norm->form.plan);
}

static int add(const struct stk_cuda_norm *norm, const void *gradient, float *sum, void *stream,
               stoker_error *error)
{
    const struct stk_cuda_device *const device = &norm->math->device;
    const struct stk_train_add_gradient arguments = { .gradient = gradient,
                                                      .sum = sum,
                                                      .count = norm->channels };
    return device->launch(device->context,
                          stk_train_kernel_in("stk_train_add_gradient", STOKER_FLOAT32), &arguments,
                          stream, error);
}

int stk_cuda_norm_run(struct stk_cuda_norm *norm, const struct stk_cuda_operands *o, void *stream,
                      stoker_error *error)
{
    assert(o->dx != o->dy);
    const struct stk_form_operands *const f = &norm->form.operands;
    char *const gamma_grad = o->workspace;
    char *const beta_grad = gamma_grad + norm->part_bytes;
    struct stk_cuda_bound bound = { .count = 0 };
    stk_cuda_bind(&bound, f->x, o->x);
    stk_cuda_bind(&bound, f->dy, o->dy);
    stk_cuda_bind(&bound, f->dx, o->dx);
    stk_cuda_bind(&bound, f->mean, o->applied.mean);
    stk_cuda_bind(&bound, f->inverse, o->applied.inverse);
    stk_cuda_bind(&bound, f->gamma, o->applied.gamma);
    stk_cuda_bind(&bound, f->beta, o->applied.beta);
    stk_cuda_bind(&bound, f->gamma_grad, gamma_grad);
    stk_cuda_bind(&bound, f->beta_grad, beta_grad);
    int rc = stk_cuda_form_run(&norm->form, &bound, beta_grad + norm->part_bytes, stream, error);
    if (rc == STOKER_OK)
        rc = add(norm, gamma_grad, o->weight_grad, stream, error);
    if (rc == STOKER_OK)
        rc = add(norm, beta_grad, o->bias_grad, stream, error);
    return rc;
}
