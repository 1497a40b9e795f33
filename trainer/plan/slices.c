/* slices.c - see slices.h. */
#include "trainer/plan/slices.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

/* last[parameter]: the last operation that adds to its gradient; 0 if there is none. */
static void find_writers(const struct stk_plan *plan, uint32_t *last)
{
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct stk_layer *const layer = &plan->model->layers[plan->ops[i].layer];
        if (!stk_op_writes_gradients(plan->ops[i].kind))
            continue;
        if (layer->weight >= 0)
            last[layer->weight] = i;
        if (layer->bias >= 0)
            last[layer->bias] = i;
    }
}

/* Divides floats [begin, end) evenly. Without memory for them, counts only. */
static void append(struct stk_slices *out, uint64_t begin, uint64_t end, uint32_t op,
                   uint64_t floats_max)
{
    const uint64_t pieces = (end - begin + floats_max - 1) / floats_max;
    const uint64_t even = (end - begin + pieces - 1) / pieces;
    const uint64_t most = (even + STK_ALIGN_FLOATS - 1) / STK_ALIGN_FLOATS * STK_ALIGN_FLOATS;
    for (uint64_t at = begin; at < end; at += most) {
        if (out->slices != NULL)
            out->slices[out->count] = (struct stk_slice){
                .first = at, .count = end - at < most ? end - at : most, .op = op
            };
        out->count++;
    }
}

/* From the end of the arena to its start, as backward passes go: a parameter is never complete
 * before those behind it. A parameter has the padding that follows it. */
static void cut(struct stk_slices *out, const stoker_model *model, const uint32_t *last,
                uint64_t floats_min, uint64_t floats_max)
{
    uint64_t begin = model->parameter_floats;
    uint64_t end = begin;
    uint32_t op = 0;
    out->count = 0;
    for (uint32_t p = model->parameter_count; p-- > 0;) {
        if (begin < end && end - begin >= floats_min && last[p] > op) {
            append(out, begin, end, op, floats_max);
            end = begin;
        }
        op = last[p] > op ? last[p] : op;
        assert(model->parameters[p].offset < begin);
        begin = model->parameters[p].offset;
    }
    assert(begin == 0);
    if (begin < end)
        append(out, begin, end, op, floats_max);
}

int stk_slices_make(struct stk_slices *out, const struct stk_plan *plan, uint64_t floats_min,
                    uint64_t floats_max, stoker_error *error)
{
    assert(floats_max > 0);
    assert(floats_max % STK_ALIGN_FLOATS == 0);
    memset(out, 0, sizeof(*out));
    uint32_t *const last = stk_calloc(plan->model->parameter_count + 1U, sizeof(*last));
    if (last != NULL) {
        find_writers(plan, last);
        cut(out, plan->model, last, floats_min, floats_max);
        out->slices = stk_calloc(out->count + 1U, sizeof(*out->slices));
    }
    if (last == NULL || out->slices == NULL) {
        stk_free(last);
        out->count = 0;
        return stk_refuse_option(error, STOKER_ENOMEM, "slices of the gradients");
    }
    cut(out, plan->model, last, floats_min, floats_max);
    stk_free(last);
    return STOKER_OK;
}

void stk_slices_free(struct stk_slices *slices)
{
    stk_free(slices->slices);
    memset(slices, 0, sizeof(*slices));
}
