/* field_plan.c - see field_plan.h. */
#include "loader/pipeline/plan/field_plan.h"

#include <string.h>

#include "loader/base/memory/memory.h"

enum { RECORD_ALIGN = 64, LENGTH_BYTES = 64, SLACK_BYTES = 64 };

static size_t align(size_t bytes)
{
    return (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

/* Returns true if the decoded record of a sample is the row of its only field. */
static bool has_bare_record(const stoker_dataset *dataset)
{
    uint32_t fields = 0;
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        const stoker_field_info *info = &dataset->fields[i].info;
        if (info->part != STOKER_NO_PART && (info->varies || fields++ > 0))
            return false;
    }
    return fields == 1;
}

/* A length lies in a cache line of its own before a field that varies; a vector that a kernel
 * reads or writes too much lies behind each field. */
static void add_to_record(struct stk_field_plan *plan, uint32_t index,
                          const struct stk_field *field, size_t bytes)
{
    plan->record_bytes += field->info.varies ? LENGTH_BYTES : 0;
    plan->record_at[index] = plan->record_bytes;
    plan->record_bytes += plan->record_has_gaps ? align(bytes) + SLACK_BYTES : bytes;
}

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The same element in each channel. */
static void fill_pixel(const struct stk_output *output, size_t pixel_bytes,
                       uint8_t fill[STK_MASK_PIXEL_BYTES_MAX])
{
    const size_t bytes = output->retype.from_bytes;
    for (size_t at = 0; at + bytes <= pixel_bytes && at + bytes <= STK_MASK_PIXEL_BYTES_MAX;
         at += bytes)
        memcpy(fill + at, output->fill, bytes);
}

/* Empty pixels of a mask have a value of their own, whatever fills the image. */
static int plan_masks(struct stk_field_plan *plan, const stoker_dataset *dataset,
                      const struct stk_output *outputs, const struct stk_framing *framing)
{
    uint8_t fill[STK_MASK_PIXEL_BYTES_MAX] = { 0 };
    for (uint32_t i = 1; framing != NULL && i < dataset->info.field_count; i++) {
        const struct stk_field *field = &dataset->fields[i];
        if (field->info.kind != STOKER_FIELD_KIND_MASK)
            continue;
        if (plan->masks == NULL)
            plan->masks = stk_calloc(dataset->info.field_count, sizeof(plan->masks[0]));
        if (plan->masks == NULL)
            return STOKER_ENOMEM;
        const size_t pixel_bytes = field->entry_bytes / (size_t)field->info.shape[1];
        fill_pixel(&outputs[i], pixel_bytes, fill);
        const int rc = stk_mask_plan_init(&plan->masks[i], framing, (uint32_t)pixel_bytes, fill);
        if (rc < 0)
            return rc;
        plan->mask_bytes += align(field->bytes);
        plan->mask_scratch_bytes =
            greater(plan->mask_scratch_bytes, align(stk_mask_scratch_bytes(&plan->masks[i])));
    }
    return 0;
}

static void plan_part(struct stk_field_plan *plan, const struct stk_field_plan_options *options,
                      uint32_t index)
{
    struct stk_part_plan *part = &plan->parts[index];
    const stoker_dataset *dataset = options->dataset;
    struct stk_part_facts facts = options->parts[index];
    part->own = dataset->part_fields[index];
    for (uint32_t i = part->own.first; i < part->own.first + part->own.count; i++) {
        if (dataset->fields[i].info.varies || part->raw_bytes == SIZE_MAX)
            part->raw_bytes = SIZE_MAX;
        else
            part->raw_bytes += dataset->fields[i].bytes;
    }
    const uint32_t first = part->own.first;
    facts.as_stored = part->own.count == 1 && part->raw_bytes != SIZE_MAX &&
                      !stk_field_is_mask(plan, first) && (first > 0 || options->first_is_copied);
    part->route = stk_part_route(&facts);
}

int stk_field_plan_init(struct stk_field_plan *plan, const struct stk_field_plan_options *options)
{
    const stoker_dataset *dataset = options->dataset;
    const stoker_dataset_info *info = &dataset->info;
    const uint32_t count = info->field_count;
    *plan = (struct stk_field_plan){
        .record_has_gaps = !has_bare_record(dataset),
        .part_bytes =
            info->part_count == 1 ? info->encoded_bytes_max : align(info->encoded_bytes_max),
    };
    plan->parts = stk_calloc((size_t)info->part_count + 1, sizeof(plan->parts[0]));
    plan->record_at = stk_calloc(count, sizeof(plan->record_at[0]));
    if (plan->parts == NULL || plan->record_at == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_field *field = &dataset->fields[i];
        const size_t cached = i == 0 ? options->cached_bytes : field->bytes;
        if (options->sizes[i].row_bytes > SIZE_MAX / 4 || cached > SIZE_MAX / 4 ||
            plan->row_bytes > SIZE_MAX / 4 || plan->record_bytes > SIZE_MAX / 4)
            return STOKER_ELIMIT;
        plan->row_bytes += options->sizes[i].row_bytes;
        if (field->info.part == STOKER_NO_PART)
            continue;
        plan->stored_bytes += field->bytes;
        add_to_record(plan, i, field, cached);
    }
    const int rc = plan_masks(plan, dataset, options->outputs, options->framing);
    for (uint32_t i = 0; i < info->part_count && rc == 0; i++)
        plan_part(plan, options, i);
    return rc;
}

void stk_field_plan_destroy(struct stk_field_plan *plan)
{
    stk_free(plan->parts);
    stk_free(plan->record_at);
    stk_free(plan->masks);
    *plan = (struct stk_field_plan){ 0 };
}
