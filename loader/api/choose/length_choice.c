/* length_choice.c - see length_choice.h. */
#include "loader/api/choose/length_choice.h"

#include <inttypes.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/pipeline/order/length_batches.h"

/* The first field that varies: its lengths count. UINT32_MAX if there is none. */
static uint32_t field_of(const stoker_dataset *dataset)
{
    for (uint32_t i = 0; i < dataset->info.field_count; i++)
        if (dataset->fields[i].info.varies)
            return i;
    return UINT32_MAX;
}

int stk_length_choice_check(const stoker_loader_options *options, const stoker_dataset *dataset,
                            stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    if (options->batch_values_max == 0)
        return 0;
    if (options->last == STOKER_LAST_PAD)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "batch_values_max: batches differ in their samples, so last must be "
                             "SHORT, DROP or EVEN, not PAD");
    if (field_of(dataset) == UINT32_MAX)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "batch_values_max: no field of %s varies in length",
                             dataset->ops->name);
    return 0;
}

/* Rows are padded to a multiple of this many entries; 0 = they are not padded. */
static uint64_t multiple_of(const struct stk_pack *pack)
{
    switch (pack->form) {
    case STOKER_FIELD_FORM_PACKED:
    case STOKER_FIELD_FORM_JOINED:
        return 0;
    case STOKER_FIELD_FORM_PADDED:
        return 1;
    case STOKER_FIELD_FORM_PADDED_MULTIPLE:
        return pack->multiple;
    default:
        return pack->length_max;
    }
}

static struct stk_length_rule rule_of(const stoker_loader *loader)
{
    const uint32_t field = field_of(loader->pipeline.dataset);
    const struct stk_pack *pack = &loader->outputs.each[field].pack;
    return (struct stk_length_rule){
        .values_max = loader->options.batch_values_max,
        .rows_max = loader->options.batch_size,
        .multiple = multiple_of(pack),
        .row_min = pack->form == STOKER_FIELD_FORM_PADDED_MAX ? pack->length_max : 0,
    };
}

uint32_t stk_length_choice_hash(const stoker_loader *loader, uint32_t order_hash)
{
    const stoker_loader_options *options = &loader->options;
    if (options->batch_values_max == 0)
        return order_hash;
    const struct stk_length_rule rule = rule_of(loader);
    const uint64_t words[] = { order_hash, rule.values_max, rule.rows_max, rule.multiple,
                               options->batch_window };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hash = stk_mix64(hash ^ words[i]);
    return (uint32_t)(hash >> 40) | 1;
}

int stk_length_choice_start(stoker_loader *loader, uint64_t length, uint64_t first_epoch,
                            uint64_t first_position, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const stoker_loader_options *options = &loader->options;
    struct stk_pipeline *pipeline = &loader->pipeline;
    if (options->batch_values_max == 0)
        return 0;
    const struct stk_length_options lengths = {
        .dataset = pipeline->dataset,
        .sampler = &pipeline->sampler,
        .field = field_of(pipeline->dataset),
        .rule = rule_of(loader),
        .window = options->batch_window,
        .length = length,
        .rank = options->rank,
        .world_size = options->world_size,
        .last = options->last,
        .epochs = options->epochs,
        .first_epoch = first_epoch,
        .first_position = first_position,
    };
    const struct stk_field *field = &pipeline->dataset->fields[lengths.field];
    const uint64_t longest = field->info.shape[0];
    const uint64_t needed = stk_length_values(&lengths.rule, 1, longest, longest);
    if (needed > options->batch_values_max)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "batch_values_max %" PRIu64 ": the longest sample alone has %" PRIu64
                             " in field \"%s\"",
                             options->batch_values_max, needed, field->info.name);
    pipeline->lengths = stk_calloc(1, sizeof(*pipeline->lengths));
    if (pipeline->lengths == NULL)
        return STOKER_ENOMEM;
    const int rc = stk_length_batches_start(pipeline->lengths, &lengths, error);
    if (rc == 0)
        stk_schedule_use_lengths(&pipeline->schedule, pipeline->lengths);
    return rc;
}

void stk_length_choice_stop(stoker_loader *loader)
{
    if (loader->pipeline.lengths != NULL)
        stk_length_batches_free(loader->pipeline.lengths);
    stk_free(loader->pipeline.lengths);
    loader->pipeline.lengths = NULL;
}
