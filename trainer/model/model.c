/* model.c - the list of layers and parameters, and its first error. */
#include "trainer/model/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/model/build.h"

static const char *const kind_names[] = {
    [STK_INPUT] = "input",
    [STK_CONV2D] = "conv2d",
    [STK_LINEAR] = "linear",
    [STK_MAX_POOL] = "max pool",
    [STK_AVG_POOL] = "avg pool",
    [STK_RELU] = "relu",
    [STK_BATCH_NORM] = "batch norm",
    [STK_DROPOUT] = "dropout",
    [STK_FLATTEN] = "flatten",
    [STK_ADD] = "add",
    [STK_SOFTMAX_CROSS_ENTROPY] = "cross entropy",
    [STK_MSE] = "mse",
    [STK_CUT] = "cut",
};

const char *stk_layer_kind_name(enum stk_layer_kind kind)
{
    assert((size_t)kind < sizeof(kind_names) / sizeof(kind_names[0]));
    return kind_names[kind];
}

struct stk_shape_text stk_shape_text(struct stk_shape shape)
{
    struct stk_shape_text out;
    if (shape.rank == 1)
        (void)snprintf(out.text, sizeof(out.text), "%" PRIu32, shape.c);
    else if (shape.rank == 2)
        (void)snprintf(out.text, sizeof(out.text), "%" PRIu32 "x%" PRIu32, shape.h, shape.w);
    else
        (void)snprintf(out.text, sizeof(out.text), "%" PRIu32 "x%" PRIu32 "x%" PRIu32, shape.h,
                       shape.w, shape.c);
    return out;
}

/* ---- errors ---- */

static int fail_model(stoker_model *model, int code, const char *what)
{
    assert(model->error.code == 0);
    return stk_refuse_option(&model->error, code, "%s", what);
}

int stk_model_fail(stoker_model *model, const struct stk_draft *draft, int code, const char *format,
                   ...)
{
    char what[STK_LINE_BYTES];
    int used = snprintf(what, sizeof(what), "layer '%s' (%s) ", draft->layer.name,
                        stk_layer_kind_name(draft->layer.kind));
    assert(used > 0);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what + used, sizeof(what) - (size_t)used, format, arguments);
    va_end(arguments);
    return fail_model(model, code, what);
}

const stoker_error *stoker_model_error(const stoker_model *model)
{
    return model == NULL || model->error.code == 0 ? NULL : &model->error;
}

/* ---- growth ---- */

/* Makes room for `more` items beyond count; on failure the array is unchanged. */
static int reserve(void **array, uint32_t *capacity, uint32_t count, uint32_t more,
                   size_t element_bytes)
{
    if (count + more <= *capacity)
        return STOKER_OK;
    const uint32_t grown_capacity = 2 * (count + more) + 14;
    void *grown = stk_calloc(grown_capacity, element_bytes);
    if (grown == NULL)
        return STOKER_ENOMEM;
    if (count > 0)
        memcpy(grown, *array, count * element_bytes);
    stk_free(*array);
    *array = grown;
    *capacity = grown_capacity;
    return STOKER_OK;
}

static int reserve_layer(stoker_model *model)
{
    void *array = model->layers;
    int rc = reserve(&array, &model->layer_capacity, model->layer_count, 1, sizeof(*model->layers));
    model->layers = array;
    return rc;
}

static int reserve_tensors(struct stk_parameter **tensors, uint32_t *capacity, uint32_t count,
                           uint32_t more)
{
    void *array = *tensors;
    int rc = reserve(&array, capacity, count, more, sizeof(**tensors));
    *tensors = array;
    return rc;
}

static uint64_t align_floats(uint64_t floats)
{
    return (floats + STK_ALIGN_FLOATS - 1) / STK_ALIGN_FLOATS * STK_ALIGN_FLOATS;
}

/* ---- drafts ---- */

static bool is_name(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    if (name == NULL)
        return false;
    const size_t length = strnlen(name, STOKER_LAYER_NAME_MAX);
    return length > 0 && length < STOKER_LAYER_NAME_MAX && strspn(name, allowed) == length;
}

uint32_t stk_model_find(const stoker_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->layer_count; i++)
        if (strcmp(model->layers[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

int stk_model_begin(stoker_model *model, struct stk_draft *draft, enum stk_layer_kind kind,
                    const char *name)
{
    if (model == NULL)
        return STOKER_EINVAL;
    if (model->error.code != 0)
        return model->error.code;

    char what[120];
    (void)snprintf(what, sizeof(what), "layer %" PRIu32 " (%s): its name must be 1 to 63 of %s",
                   model->layer_count, stk_layer_kind_name(kind), "[A-Za-z0-9_.-]");
    if (!is_name(name))
        return fail_model(model, STOKER_EINVAL, what);

    memset(draft, 0, sizeof(*draft));
    struct stk_layer *layer = &draft->layer;
    (void)snprintf(layer->name, sizeof(layer->name), "%s", name);
    layer->kind = kind;
    layer->input = model->next_input;
    layer->weight = layer->bias = layer->running_mean = layer->running_var = -1;
    if (model->closed)
        return stk_model_fail(model, draft, STOKER_EINVAL, "comes after the loss");
    if (stk_model_find(model, name) != UINT32_MAX)
        return stk_model_fail(model, draft, STOKER_EINVAL, "has a name that is taken already");
    if (model->layer_count >= STOKER_MODEL_LAYERS_MAX)
        return stk_model_fail(model, draft, STOKER_ELIMIT, "is one more than %d layers",
                              STOKER_MODEL_LAYERS_MAX);
    layer->in = layer->out = model->layers[layer->input].out;
    layer->flattened = model->layers[layer->input].flattened;
    return STOKER_OK;
}

static struct stk_parameter *draft_tensor(struct stk_parameter *tensors, uint32_t *count,
                                          const stoker_model *model, const struct stk_layer *layer,
                                          const char *suffix)
{
    struct stk_parameter *tensor = &tensors[(*count)++];
    (void)snprintf(tensor->name, sizeof(tensor->name), "%s.%s", layer->name, suffix);
    tensor->layer = model->layer_count;
    return tensor;
}

int32_t stk_draft_parameter(const stoker_model *model, struct stk_draft *draft,
                            enum stk_parameter_role role, const char *suffix, uint32_t rank,
                            const uint32_t *torch_shape)
{
    assert(draft->parameter_count < STK_PARAMETERS_PER_LAYER);
    const int32_t index = (int32_t)(model->parameter_count + draft->parameter_count);
    struct stk_parameter *parameter =
        draft_tensor(draft->parameters, &draft->parameter_count, model, &draft->layer, suffix);
    parameter->role = role;
    parameter->rank = rank;
    parameter->elements = 1;
    for (uint32_t axis = 0; axis < rank; axis++) {
        parameter->torch_shape[axis] = torch_shape[axis];
        parameter->elements *= torch_shape[axis];
    }
    return index;
}

int32_t stk_draft_statistic(const stoker_model *model, struct stk_draft *draft, const char *suffix,
                            uint32_t elements)
{
    assert(draft->statistic_count < STK_STATISTICS_PER_LAYER);
    const int32_t index = (int32_t)(model->statistic_count + draft->statistic_count);
    struct stk_parameter *statistic =
        draft_tensor(draft->statistics, &draft->statistic_count, model, &draft->layer, suffix);
    statistic->rank = 1;
    statistic->torch_shape[0] = elements;
    statistic->elements = elements;
    return index;
}

/* ---- appending ---- */

static int check_limits(stoker_model *model, const struct stk_draft *draft)
{
    const struct stk_shape out = draft->layer.out;
    const bool wide =
        out.rank > 1 && (out.h > STOKER_MODEL_EXTENT_MAX || out.w > STOKER_MODEL_EXTENT_MAX);
    if (wide || stk_shape_elements(out) > STOKER_MODEL_ELEMENTS_MAX)
        return stk_model_fail(model, draft, STOKER_ELIMIT,
                              "makes %s of %s: at most %d an axis and %d in all",
                              stk_shape_text(out).text, stk_shape_text(draft->layer.in).text,
                              STOKER_MODEL_EXTENT_MAX, STOKER_MODEL_ELEMENTS_MAX);
    uint64_t elements = model->parameter_elements;
    for (uint32_t i = 0; i < draft->parameter_count; i++)
        elements += draft->parameters[i].elements;
    if (elements > STOKER_MODEL_PARAMETERS_MAX)
        return stk_model_fail(model, draft, STOKER_ELIMIT,
                              "brings the model to %" PRIu64 " parameters, at most %" PRIu64
                              " are allowed",
                              elements, STOKER_MODEL_PARAMETERS_MAX);
    return STOKER_OK;
}

static uint64_t place_tensors(struct stk_parameter *to, const struct stk_parameter *from,
                              uint32_t count, uint64_t floats)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].offset = floats;
        floats = align_floats(floats + from[i].elements);
    }
    return floats;
}

int stk_model_append(stoker_model *model, const struct stk_draft *draft)
{
    int rc = check_limits(model, draft);
    if (rc != STOKER_OK)
        return rc;
    rc = reserve_layer(model);
    if (rc == STOKER_OK)
        rc = reserve_tensors(&model->parameters, &model->parameter_capacity, model->parameter_count,
                             draft->parameter_count);
    if (rc == STOKER_OK)
        rc = reserve_tensors(&model->statistics, &model->statistic_capacity, model->statistic_count,
                             draft->statistic_count);
    if (rc != STOKER_OK)
        return stk_model_fail(model, draft, rc, "cannot be added");

    model->next_input = model->layer_count;
    model->layers[model->layer_count++] = draft->layer;
    if (draft->parameter_count > 0)
        model->parameter_floats =
            place_tensors(model->parameters + model->parameter_count, draft->parameters,
                          draft->parameter_count, model->parameter_floats);
    for (uint32_t i = 0; i < draft->parameter_count; i++)
        model->parameter_elements += draft->parameters[i].elements;
    if (draft->statistic_count > 0)
        model->statistic_floats =
            place_tensors(model->statistics + model->statistic_count, draft->statistics,
                          draft->statistic_count, model->statistic_floats);
    model->parameter_count += draft->parameter_count;
    model->statistic_count += draft->statistic_count;
    return STOKER_OK;
}

/* ---- public calls ---- */

static int check_samples(const uint32_t *shape, uint32_t rank, struct stk_shape *out,
                         stoker_error *error)
{
    if (shape == NULL || rank < 1 || rank > 3)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "samples must have 1 to 3 axes, not %" PRIu32, rank);
    *out = (struct stk_shape){ .rank = rank, .h = 1, .w = 1, .c = 1 };
    if (rank == 1)
        out->c = shape[0];
    else {
        out->h = shape[0];
        out->w = shape[1];
        out->c = rank == 3 ? shape[2] : 1;
    }
    const uint32_t most = rank == 1 ? STOKER_MODEL_ELEMENTS_MAX : STOKER_MODEL_EXTENT_MAX;
    for (uint32_t axis = 0; axis < rank; axis++)
        if (shape[axis] < 1 || shape[axis] > most)
            return stk_refuse_option(error, STOKER_EINVAL,
                                     "samples of %s: axis %" PRIu32 " must be 1 to %" PRIu32,
                                     stk_shape_text(*out).text, axis, most);
    if (stk_shape_elements(*out) > STOKER_MODEL_ELEMENTS_MAX)
        return stk_refuse_option(error, STOKER_ELIMIT,
                                 "samples of %s: at most %d elements are allowed",
                                 stk_shape_text(*out).text, STOKER_MODEL_ELEMENTS_MAX);
    return STOKER_OK;
}

int stoker_model_create(stoker_model **out, const uint32_t *shape, uint32_t rank,
                        stoker_error *error)
{
    struct stk_shape samples;
    if (out == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "no place for the model");
    int rc = check_samples(shape, rank, &samples, error);
    if (rc != STOKER_OK)
        return rc;

    stoker_model *model = stk_calloc(1, sizeof(*model));
    rc = model == NULL ? STOKER_ENOMEM : reserve_layer(model);
    if (rc != STOKER_OK) {
        stoker_model_destroy(&model);
        return stk_refuse_option(error, rc, "model");
    }
    model->layers[0] = (struct stk_layer){ .kind = STK_INPUT,
                                           .name = "input",
                                           .in = samples,
                                           .out = samples,
                                           .weight = -1,
                                           .bias = -1,
                                           .running_mean = -1,
                                           .running_var = -1 };
    model->layer_count = 1;
    *out = model;
    return STOKER_OK;
}

void stoker_model_destroy(stoker_model **model)
{
    if (model == NULL || *model == NULL)
        return;
    stk_free((*model)->layers);
    stk_free((*model)->parameters);
    stk_free((*model)->statistics);
    stk_free(*model);
    *model = NULL;
}

int stoker_model_from(stoker_model *model, const char *layer)
{
    if (model == NULL)
        return STOKER_EINVAL;
    if (model->error.code != 0)
        return model->error.code;
    const uint32_t index = is_name(layer) ? stk_model_find(model, layer) : UINT32_MAX;
    char what[128];
    (void)snprintf(what, sizeof(what), "layer %" PRIu32 " is to read '%s'%s", model->layer_count,
                   is_name(layer) ? layer : "?",
                   model->closed ? " after the loss" : ": there is no such layer");
    if (model->closed || index == UINT32_MAX)
        return fail_model(model, STOKER_EINVAL, what);
    model->next_input = index;
    return STOKER_OK;
}

void stoker_model_get_size(const stoker_model *model, stoker_model_size *out)
{
    if (out == NULL)
        return;
    *out = (stoker_model_size){ 0 };
    if (model == NULL)
        return;
    out->layers = model->layer_count - 1U - (model->closed ? 1U : 0U);
    out->parameters = model->parameter_elements;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const uint64_t flops = model->layers[i].flops;
        out->flops_per_sample =
            flops > UINT64_MAX - out->flops_per_sample ? UINT64_MAX : out->flops_per_sample + flops;
    }
}
