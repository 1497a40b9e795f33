/* field_plan.c - see field_plan.h. */
#include "loader/pipeline/field_plan.h"

#include <string.h>

#include "loader/base/memory.h"

enum { RECORD_ALIGN = 64, LENGTH_BYTES = 64, SLACK_BYTES = 64 };

bool stk_dataset_has_several(const stoker_dataset *dataset)
{
    return dataset->info.part_count != 1 || dataset->part_fields[0].first != 0 ||
           dataset->part_fields[0].count != 1 || dataset->fields[0].info.varies;
}

static size_t align(size_t bytes)
{
    return (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

/* A length lies in a cache line of its own before a field that varies; a vector that a kernel reads or writes too
 * much lies behind each field. */
static void add_to_record(struct stk_field_plan *plan, uint32_t index,
                          const struct stk_field *field, size_t bytes)
{
    if (field->info.part == STOKER_NO_PART)
        return;
    plan->record_bytes += field->info.varies ? LENGTH_BYTES : 0;
    plan->record_at[index] = plan->record_bytes;
    plan->record_bytes += align(bytes) + SLACK_BYTES;
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
        if (field->info.kind != STOKER_FIELD_MASK)
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

int stk_field_plan_init(struct stk_field_plan *plan, const stoker_dataset *dataset,
                        const struct stk_field_size *sizes, const struct stk_output *outputs,
                        size_t cached_bytes, const struct stk_framing *framing)
{
    const uint32_t count = dataset->info.field_count;
    *plan = (struct stk_field_plan){
        .several = stk_dataset_has_several(dataset),
        .part_bytes = align(dataset->info.encoded_bytes_max),
    };
    plan->record_at = stk_calloc(count, sizeof(plan->record_at[0]));
    if (plan->record_at == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_field *field = &dataset->fields[i];
        const size_t cached = i == 0 && cached_bytes > field->bytes ? cached_bytes : field->bytes;
        if (sizes[i].row_bytes > SIZE_MAX / 4 || cached > SIZE_MAX / 4 ||
            plan->row_bytes > SIZE_MAX / 4 || plan->record_bytes > SIZE_MAX / 4)
            return STOKER_ELIMIT;
        plan->row_bytes += sizes[i].row_bytes;
        add_to_record(plan, i, field, cached);
    }
    return plan_masks(plan, dataset, outputs, framing);
}

void stk_field_plan_destroy(struct stk_field_plan *plan)
{
    stk_free(plan->record_at);
    stk_free(plan->masks);
    *plan = (struct stk_field_plan){ 0 };
}
