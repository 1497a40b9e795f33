/* layers.c - one function per layer: options, shapes, parameters.
 *
 * FLOPs are those of evaluation: 2 for a multiply-add, 1 for a comparison, addition or
 * multiplication, 0 for biases and dropout.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/memory/memory.h"
#include "trainer/model/build.h"

enum { WINDOW_MAX = 255, FILTERS_MAX = 65535, PLACES_MAX = 65536 };

static struct stk_shape vector(uint64_t features)
{
    return (struct stk_shape){ .rank = 1, .h = 1, .w = 1, .c = (uint32_t)features };
}

static const char *input_name(const stoker_model *model, const struct stk_draft *draft)
{
    return model->layers[draft->layer.input].name;
}

/* Adds the layer unless rc is an error. */
static int append_unless(int rc, stoker_model *model, const struct stk_draft *draft)
{
    return rc != STOKER_OK ? rc : stk_model_append(model, draft);
}

/* ---- windows: convolutions and pools ---- */

static int check_image(stoker_model *model, const struct stk_draft *draft)
{
    if (draft->layer.in.rank == 3)
        return STOKER_OK;
    return stk_model_fail(model, draft, STOKER_EMISMATCH,
                          "reads '%s' of shape %s and needs an image: height x width x channels",
                          input_name(model, draft), stk_shape_text(draft->layer.in).text);
}

/* Checks the ranges of kernel, stride and padding. */
static int check_window(stoker_model *model, const struct stk_draft *draft)
{
    const struct stk_layer *layer = &draft->layer;
    for (int axis = 0; axis < 2; axis++) {
        const uint32_t kernel = layer->kernel[axis];
        const uint32_t most = layer->kind == STK_CONV2D ? kernel - 1 : kernel / 2;
        if (kernel < 1 || kernel > WINDOW_MAX)
            return stk_model_fail(model, draft, STOKER_EINVAL,
                                  "has a kernel of %" PRIu32 "x%" PRIu32 ": 1 to %d are allowed",
                                  layer->kernel[0], layer->kernel[1], WINDOW_MAX);
        if (layer->stride[axis] > WINDOW_MAX)
            return stk_model_fail(model, draft, STOKER_EINVAL,
                                  "has a stride of %" PRIu32 "x%" PRIu32 ": 1 to %d are allowed",
                                  layer->stride[0], layer->stride[1], WINDOW_MAX);
        if (layer->padding[axis] > most)
            return stk_model_fail(model, draft, STOKER_EINVAL,
                                  "has a padding of %" PRIu32 "x%" PRIu32 ": at most %" PRIu32
                                  " for a kernel of %" PRIu32,
                                  layer->padding[0], layer->padding[1], most, kernel);
    }
    return STOKER_OK;
}

/* floor((in + 2 padding - kernel) / stride) + 1 */
static int slide_window(stoker_model *model, struct stk_draft *draft)
{
    struct stk_layer *layer = &draft->layer;
    const uint32_t extents[2] = { layer->in.h, layer->in.w };
    uint32_t out[2];
    for (int axis = 0; axis < 2; axis++) {
        const uint32_t padded = extents[axis] + 2 * layer->padding[axis];
        if (padded < layer->kernel[axis])
            return stk_model_fail(
                model, draft, STOKER_EMISMATCH,
                "has a kernel of %" PRIu32 "x%" PRIu32
                ", larger than '%s' of shape %s with padding %" PRIu32 "x%" PRIu32,
                layer->kernel[0], layer->kernel[1], input_name(model, draft),
                stk_shape_text(layer->in).text, layer->padding[0], layer->padding[1]);
        out[axis] = (padded - layer->kernel[axis]) / layer->stride[axis] + 1;
    }
    layer->out.h = out[0];
    layer->out.w = out[1];
    return STOKER_OK;
}

/* A later version's option that this one does not know. */
#define CHECK_RESERVED(model, draft, o)                                                            \
    check_reserved(model, draft, (o)->reserved, sizeof((o)->reserved) / sizeof((o)->reserved[0]))
static int check_reserved(stoker_model *model, const struct stk_draft *draft,
                          const uint32_t *reserved, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (reserved[i] != 0)
            return stk_model_fail(model, draft, STOKER_EINVAL,
                                  "has reserved[%zu] = %" PRIu32
                                  ": an option that this version lacks",
                                  i, reserved[i]);
    return STOKER_OK;
}

/* ---- conv2d ---- */

static int check_groups(stoker_model *model, const struct stk_draft *draft, uint32_t filters)
{
    const struct stk_layer *layer = &draft->layer;
    if (filters < 1 || filters > FILTERS_MAX)
        return stk_model_fail(model, draft, STOKER_EINVAL,
                              "has %" PRIu32 " filters: 1 to %d are allowed", filters, FILTERS_MAX);
    if (filters % layer->groups != 0)
        return stk_model_fail(model, draft, STOKER_EINVAL,
                              "has %" PRIu32 " groups, which do not divide its %" PRIu32 " filters",
                              layer->groups, filters);
    if (layer->in.c % layer->groups != 0)
        return stk_model_fail(model, draft, STOKER_EMISMATCH,
                              "has %" PRIu32 " groups, which do not divide the %" PRIu32
                              " channels of '%s' of shape %s",
                              layer->groups, layer->in.c, input_name(model, draft),
                              stk_shape_text(layer->in).text);
    return STOKER_OK;
}

static void resolve_conv2d(struct stk_layer *layer, const stoker_conv2d *o)
{
    layer->groups = o->groups == 0 ? 1 : o->groups;
    for (int axis = 0; axis < 2; axis++) {
        layer->kernel[axis] = o->kernel[axis];
        layer->stride[axis] = o->stride[axis] == 0 ? 1 : o->stride[axis];
        layer->padding[axis] = o->padding[axis];
    }
}

int stoker_model_conv2d(stoker_model *model, const char *name, const stoker_conv2d *o)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_CONV2D, name);
    if (rc != STOKER_OK)
        return rc;
    struct stk_layer *layer = &draft.layer;
    if (o == NULL)
        return stk_model_fail(model, &draft, STOKER_EINVAL, "has no options");
    resolve_conv2d(layer, o);
    rc = CHECK_RESERVED(model, &draft, o);
    if (rc == STOKER_OK)
        rc = check_window(model, &draft);
    if (rc == STOKER_OK)
        rc = check_image(model, &draft);
    if (rc == STOKER_OK)
        rc = check_groups(model, &draft, o->filters);
    if (rc == STOKER_OK)
        rc = slide_window(model, &draft);
    if (rc != STOKER_OK)
        return rc;

    layer->out.c = o->filters;
    const uint32_t shape[4] = { o->filters, layer->in.c / layer->groups, layer->kernel[0],
                                layer->kernel[1] };
    layer->weight = stk_draft_parameter(model, &draft, STK_WEIGHT, "weight", 4, shape);
    if (!o->no_bias)
        layer->bias = stk_draft_parameter(model, &draft, STK_BIAS, "bias", 1, shape);
    layer->flops = 2 * (uint64_t)layer->out.h * layer->out.w * draft.parameters[0].elements;
    return stk_model_append(model, &draft);
}

/* ---- linear ---- */

int stoker_model_linear(stoker_model *model, const char *name, const stoker_linear *o)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_LINEAR, name);
    if (rc != STOKER_OK)
        return rc;
    struct stk_layer *layer = &draft.layer;
    if (o == NULL)
        return stk_model_fail(model, &draft, STOKER_EINVAL, "has no options");
    rc = CHECK_RESERVED(model, &draft, o);
    if (rc != STOKER_OK)
        return rc;
    if (o->features < 1 || o->features > STOKER_MODEL_FEATURES_MAX)
        return stk_model_fail(model, &draft, STOKER_EINVAL,
                              "has %" PRIu32 " features: 1 to %d are allowed", o->features,
                              STOKER_MODEL_FEATURES_MAX);
    if (layer->in.rank != 1)
        return stk_model_fail(model, &draft, STOKER_EMISMATCH,
                              "makes %" PRIu32 " features of one axis, and '%s' has shape %s: "
                              "flatten it first",
                              o->features, input_name(model, &draft),
                              stk_shape_text(layer->in).text);

    layer->out = vector(o->features);
    const uint32_t shape[2] = { o->features, layer->in.c };
    layer->weight = stk_draft_parameter(model, &draft, STK_WEIGHT, "weight", 2, shape);
    draft.parameters[0].flattened = layer->flattened;
    if (!o->no_bias)
        layer->bias = stk_draft_parameter(model, &draft, STK_BIAS, "bias", 1, shape);
    layer->flops = 2 * draft.parameters[0].elements;
    memset(&layer->flattened, 0,
           sizeof(layer->flattened)); /* its outputs are not in the order of an image */
    return stk_model_append(model, &draft);
}

/* ---- pools ---- */

static void count_pool_flops(struct stk_layer *layer)
{
    layer->flops = stk_shape_elements(layer->out) * layer->kernel[0] * layer->kernel[1];
}

static int pool(stoker_model *model, enum stk_layer_kind kind, const char *name,
                const stoker_pool2d *o)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, kind, name);
    if (rc != STOKER_OK)
        return rc;
    if (o == NULL)
        return stk_model_fail(model, &draft, STOKER_EINVAL, "has no options");
    rc = CHECK_RESERVED(model, &draft, o);
    if (rc != STOKER_OK)
        return rc;
    for (int axis = 0; axis < 2; axis++) {
        draft.layer.kernel[axis] = o->kernel[axis];
        draft.layer.stride[axis] = o->stride[axis] == 0 ? o->kernel[axis] : o->stride[axis];
        draft.layer.padding[axis] = o->padding[axis];
    }
    rc = check_window(model, &draft);
    if (rc == STOKER_OK)
        rc = check_image(model, &draft);
    if (rc == STOKER_OK)
        rc = slide_window(model, &draft);
    if (rc == STOKER_OK)
        count_pool_flops(&draft.layer);
    return append_unless(rc, model, &draft);
}

/* One window as large as the image. */
static int global_pool(stoker_model *model, enum stk_layer_kind kind, const char *name)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, kind, name);
    if (rc == STOKER_OK)
        rc = check_image(model, &draft);
    if (rc != STOKER_OK)
        return rc;
    struct stk_layer *layer = &draft.layer;
    const uint64_t places = (uint64_t)layer->in.h * layer->in.w;
    if (kind == STK_MAX_POOL && places > PLACES_MAX)
        return stk_model_fail(model, &draft, STOKER_ELIMIT,
                              "looks for a maximum among %" PRIu64
                              " places of '%s' of shape %s: at most %d are allowed",
                              places, input_name(model, &draft), stk_shape_text(layer->in).text,
                              PLACES_MAX);
    layer->kernel[0] = layer->stride[0] = layer->in.h;
    layer->kernel[1] = layer->stride[1] = layer->in.w;
    layer->out.h = layer->out.w = 1;
    count_pool_flops(layer);
    return stk_model_append(model, &draft);
}

int stoker_model_max_pool2d(stoker_model *model, const char *name, const stoker_pool2d *o)
{
    return pool(model, STK_MAX_POOL, name, o);
}

int stoker_model_avg_pool2d(stoker_model *model, const char *name, const stoker_pool2d *o)
{
    return pool(model, STK_AVG_POOL, name, o);
}

int stoker_model_global_max_pool(stoker_model *model, const char *name)
{
    return global_pool(model, STK_MAX_POOL, name);
}

int stoker_model_global_avg_pool(stoker_model *model, const char *name)
{
    return global_pool(model, STK_AVG_POOL, name);
}

/* ---- layers that keep the shape ---- */

int stoker_model_relu(stoker_model *model, const char *name)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_RELU, name);
    if (rc == STOKER_OK)
        draft.layer.flops = stk_shape_elements(draft.layer.out);
    return append_unless(rc, model, &draft);
}

static int check_batch_norm(stoker_model *model, const struct stk_draft *draft)
{
    const struct stk_layer *layer = &draft->layer;
    if (!(layer->epsilon >= 0.0F && layer->epsilon <= 1.0F))
        return stk_model_fail(model, draft, STOKER_EINVAL,
                              "has an epsilon of %g: 0 to 1 is allowed", (double)layer->epsilon);
    if (!(layer->momentum >= 0.0F && layer->momentum <= 1.0F))
        return stk_model_fail(model, draft, STOKER_EINVAL,
                              "has a momentum of %g: 0 to 1 is allowed", (double)layer->momentum);
    if (layer->in.rank == 2)
        return stk_model_fail(model, draft, STOKER_EMISMATCH,
                              "reads '%s' of shape %s and needs height x width x channels, or one "
                              "axis",
                              input_name(model, draft), stk_shape_text(layer->in).text);
    return STOKER_OK;
}

int stoker_model_batch_norm(stoker_model *model, const char *name, const stoker_batch_norm *o)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_BATCH_NORM, name);
    if (rc != STOKER_OK)
        return rc;
    struct stk_layer *layer = &draft.layer;
    const stoker_batch_norm defaults = STOKER_BATCH_NORM_INIT;
    layer->epsilon = o == NULL ? defaults.epsilon : o->epsilon;
    layer->momentum = o == NULL ? defaults.momentum : o->momentum;
    rc = o == NULL ? STOKER_OK : CHECK_RESERVED(model, &draft, o);
    if (rc == STOKER_OK)
        rc = check_batch_norm(model, &draft);
    if (rc != STOKER_OK)
        return rc;

    const uint32_t channels = layer->in.c;
    layer->weight = stk_draft_parameter(model, &draft, STK_WEIGHT, "weight", 1, &channels);
    layer->bias = stk_draft_parameter(model, &draft, STK_BIAS, "bias", 1, &channels);
    layer->running_mean = stk_draft_statistic(model, &draft, "running_mean", channels);
    layer->running_var = stk_draft_statistic(model, &draft, "running_var", channels);
    for (int i = 0; i < STK_PARAMETERS_PER_LAYER; i++)
        draft.parameters[i].flattened = layer->flattened;
    for (int i = 0; i < STK_STATISTICS_PER_LAYER; i++)
        draft.statistics[i].flattened = layer->flattened;
    layer->flops = 2 * stk_shape_elements(layer->out);
    return stk_model_append(model, &draft);
}

int stoker_model_dropout(stoker_model *model, const char *name, float rate)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_DROPOUT, name);
    if (rc == STOKER_OK && !(rate >= 0.0F && rate < 1.0F))
        rc = stk_model_fail(model, &draft, STOKER_EINVAL,
                            "has a rate of %g: 0 to below 1 is allowed", (double)rate);
    if (rc == STOKER_OK)
        draft.layer.rate = rate;
    return append_unless(rc, model, &draft);
}

int stoker_model_flatten(stoker_model *model, const char *name)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_FLATTEN, name);
    if (rc != STOKER_OK)
        return rc;
    if (draft.layer.in.rank == 3)
        draft.layer.flattened = draft.layer.in;
    draft.layer.out = vector(stk_shape_elements(draft.layer.in));
    return stk_model_append(model, &draft);
}

static bool same_shape(struct stk_shape a, struct stk_shape b)
{
    return a.rank == b.rank && a.h == b.h && a.w == b.w && a.c == b.c;
}

int stoker_model_add(stoker_model *model, const char *name, const char *other)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_ADD, name);
    if (rc != STOKER_OK)
        return rc;
    draft.layer.other = other == NULL ? UINT32_MAX : stk_model_find(model, other);
    if (draft.layer.other == UINT32_MAX)
        return stk_model_fail(model, &draft, STOKER_EINVAL, "adds '%.63s': there is no such layer",
                              other == NULL ? "?" : other);
    const struct stk_layer *second = &model->layers[draft.layer.other];
    if (!same_shape(draft.layer.in, second->out))
        return stk_model_fail(model, &draft, STOKER_EMISMATCH,
                              "adds '%s' of shape %s and '%s' of shape %s",
                              input_name(model, &draft), stk_shape_text(draft.layer.in).text, other,
                              stk_shape_text(second->out).text);
    draft.layer.flops = stk_shape_elements(draft.layer.out);
    return stk_model_append(model, &draft);
}

/* ---- losses, which close the model ---- */

/* Every layer must lead to the loss. */
static int check_read(stoker_model *model, const struct stk_draft *draft)
{
    bool *read = stk_calloc(model->layer_count, sizeof(*read));
    if (read == NULL)
        return stk_model_fail(model, draft, STOKER_ENOMEM, "cannot be added");
    read[draft->layer.input] = true;
    for (uint32_t i = 1; i < model->layer_count; i++) {
        read[model->layers[i].input] = true;
        if (model->layers[i].kind == STK_ADD)
            read[model->layers[i].other] = true;
    }
    uint32_t unread = 0;
    while (unread < model->layer_count && read[unread])
        unread++;
    stk_free(read);
    if (unread == model->layer_count)
        return STOKER_OK;
    return stk_model_fail(model, draft, STOKER_EINVAL, "closes a model in which nothing reads '%s'",
                          model->layers[unread].name);
}

static int close_with(stoker_model *model, struct stk_draft *draft)
{
    if (model->parameter_count == 0)
        return stk_model_fail(model, draft, STOKER_EINVAL, "closes a model without parameters");
    int rc = check_read(model, draft);
    if (rc == STOKER_OK)
        rc = stk_model_append(model, draft);
    model->closed = rc == STOKER_OK;
    return rc;
}

int stoker_model_softmax_cross_entropy(stoker_model *model, float label_smoothing)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_SOFTMAX_CROSS_ENTROPY, "loss");
    if (rc != STOKER_OK)
        return rc;
    if (!(label_smoothing >= 0.0F && label_smoothing < 1.0F))
        return stk_model_fail(model, &draft, STOKER_EINVAL,
                              "has a smoothing of %g: 0 to below 1 is allowed",
                              (double)label_smoothing);
    if (draft.layer.in.rank != 1)
        return stk_model_fail(model, &draft, STOKER_EMISMATCH,
                              "needs one axis of logits, and '%s' has shape %s: flatten it first",
                              input_name(model, &draft), stk_shape_text(draft.layer.in).text);
    draft.layer.rate = label_smoothing;
    return close_with(model, &draft);
}

int stoker_model_mse(stoker_model *model)
{
    struct stk_draft draft;
    int rc = stk_model_begin(model, &draft, STK_MSE, "loss");
    if (rc != STOKER_OK)
        return rc;
    return close_with(model, &draft);
}
