/* cut.c - see cut.h. */
#include "trainer/model/cut.h"

#include <inttypes.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

/* Tensors of one kind that belong to layers [begin, end). */
struct row {
    uint32_t first, count;
    uint64_t floats_before;
};

static struct row row_of(const struct stk_parameter *tensors, uint32_t count, uint32_t begin,
                         uint32_t end)
{
    struct row row = { 0 };
    while (row.first < count && tensors[row.first].layer < begin)
        row.first++;
    while (row.first + row.count < count && tensors[row.first + row.count].layer < end)
        row.count++;
    if (row.count > 0)
        row.floats_before = tensors[row.first].offset;
    return row;
}

/* ---- checks ---------------------------------------------------------------------- */

static int check_place(const stoker_model *network, uint32_t layers, stoker_error *error)
{
    const uint32_t most = network->layer_count - 2; /* without the input and the loss */
    if (layers >= 1 && layers < most)
        return STOKER_OK;
    return stk_refuse_option(
        error, STOKER_EINVAL,
        "split = %" PRIu32 ": a network of %" PRIu32
        " layers is split behind the first, the second, ... or the last but one",
        layers, most);
}

/* Only one value may cross the cut. */
static int check_crossing(const stoker_model *network, uint32_t layers, stoker_error *error)
{
    for (uint32_t i = layers + 1; i < network->layer_count; i++) {
        const struct stk_layer *layer = &network->layers[i];
        const uint32_t other = layer->kind == STK_ADD ? layer->other : layer->input;
        const uint32_t read = layer->input < layers ? layer->input : other;
        if (read < layers)
            return stk_refuse_option(
                error, STOKER_EINVAL,
                "split = %" PRIu32 ": layer '%s' behind it reads '%s' before it: no split inside a "
                "residual block",
                layers, layer->name, network->layers[read].name);
    }
    return STOKER_OK;
}

static int check_parameters(const stoker_model *network, uint32_t layers, stoker_error *error)
{
    const uint32_t before =
        row_of(network->parameters, network->parameter_count, 0, layers + 1).count;
    if (before > 0 && before < network->parameter_count)
        return STOKER_OK;
    return stk_refuse_option(error, STOKER_EINVAL,
                             "split = %" PRIu32 ": the layers %s have nothing to train", layers,
                             before == 0 ? "before it" : "behind it");
}

/* ---- a half ---------------------------------------------------------------------- */

static int copy_tensors(struct stk_parameter **out, uint32_t *out_count, uint64_t *floats,
                        const struct stk_parameter *tensors, struct row row, uint64_t floats_end,
                        uint32_t layers_before)
{
    if (row.count == 0)
        return STOKER_OK;
    *out = stk_calloc(row.count, sizeof(**out));
    if (*out == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < row.count; i++) {
        (*out)[i] = tensors[row.first + i];
        (*out)[i].layer -= layers_before;
        (*out)[i].offset -= row.floats_before;
    }
    *out_count = row.count;
    *floats = floats_end - row.floats_before;
    return STOKER_OK;
}

/* Offset after the last tensor of an array. */
static uint64_t end_of(const struct stk_parameter *tensors, uint32_t count, uint64_t floats,
                       struct row row)
{
    const uint32_t next = row.first + row.count;
    return next < count ? tensors[next].offset : floats;
}

static int32_t shifted(int32_t tensor, uint32_t first)
{
    return tensor < 0 ? tensor : tensor - (int32_t)first;
}

static struct stk_layer cut_at(const struct stk_layer *layer, uint32_t input)
{
    struct stk_layer cut = { .kind = STK_CUT,
                             .input = input,
                             .in = layer->out,
                             .out = layer->out,
                             .flattened = layer->flattened,
                             .weight = -1,
                             .bias = -1,
                             .running_mean = -1,
                             .running_var = -1 };
    (void)snprintf(cut.name, sizeof(cut.name), "%s", layer->name);
    return cut;
}

/* Copies layers [begin, end) of the network, renumbered by layers_before. */
static int copy_layers(stoker_model *stage, const stoker_model *network, uint32_t begin,
                       uint32_t end)
{
    const uint32_t before = stage->layers_before;
    const struct row parameters = row_of(network->parameters, network->parameter_count, begin, end);
    const struct row statistics = row_of(network->statistics, network->statistic_count, begin, end);
    for (uint32_t i = begin; i < end; i++) {
        struct stk_layer *layer = &stage->layers[i - before];
        *layer = network->layers[i];
        layer->input -= before; /* before = 0 in the first stage */
        layer->other -= layer->kind == STK_ADD ? before : 0;
        layer->weight = shifted(layer->weight, parameters.first);
        layer->bias = shifted(layer->bias, parameters.first);
        layer->running_mean = shifted(layer->running_mean, statistics.first);
        layer->running_var = shifted(layer->running_var, statistics.first);
    }
    int rc = copy_tensors(&stage->parameters, &stage->parameter_count, &stage->parameter_floats,
                          network->parameters, parameters,
                          end_of(network->parameters, network->parameter_count,
                                 network->parameter_floats, parameters),
                          before);
    if (rc == STOKER_OK)
        rc = copy_tensors(&stage->statistics, &stage->statistic_count, &stage->statistic_floats,
                          network->statistics, statistics,
                          end_of(network->statistics, network->statistic_count,
                                 network->statistic_floats, statistics),
                          before);
    for (uint32_t i = 0; i < stage->parameter_count; i++)
        stage->parameter_elements += stage->parameters[i].elements;
    return rc;
}

static int make_stage(stoker_model **out, uint32_t layer_count)
{
    stoker_model *stage = stk_calloc(1, sizeof(*stage));
    if (stage == NULL)
        return STOKER_ENOMEM;
    *out = stage;
    stage->layers = stk_calloc(layer_count, sizeof(*stage->layers));
    stage->layer_count = stage->layer_capacity = layer_count;
    stage->closed = true;
    return stage->layers == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static int make_first(stoker_model **out, const stoker_model *network, uint32_t layers)
{
    const int rc = make_stage(out, layers + 2);
    if (rc != STOKER_OK)
        return rc;
    (*out)->layers[layers + 1] = cut_at(&network->layers[layers], layers);
    return copy_layers(*out, network, 0, layers + 1);
}

static int make_second(stoker_model **out, const stoker_model *network, uint32_t layers)
{
    const int rc = make_stage(out, network->layer_count - layers);
    if (rc != STOKER_OK)
        return rc;
    (*out)->layers_before = layers;
    (*out)->layers[0] = cut_at(&network->layers[layers], 0);
    return copy_layers(*out, network, layers + 1, network->layer_count);
}

int stk_model_cut(stoker_model *stages[STK_STAGES], const stoker_model *network, uint32_t layers,
                  stoker_error *error)
{
    stages[0] = stages[1] = NULL;
    int rc = check_place(network, layers, error);
    if (rc == STOKER_OK)
        rc = check_crossing(network, layers, error);
    if (rc == STOKER_OK)
        rc = check_parameters(network, layers, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make_first(&stages[0], network, layers);
    if (rc == STOKER_OK)
        rc = make_second(&stages[1], network, layers);
    if (rc == STOKER_OK)
        return STOKER_OK;
    stoker_model_destroy(&stages[1]);
    stoker_model_destroy(&stages[0]);
    return stk_refuse_option(error, rc, "half a network");
}
