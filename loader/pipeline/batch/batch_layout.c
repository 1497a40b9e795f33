/* batch_layout.c - see batch_layout.h. */
#include "loader/pipeline/batch/batch_layout.h"

/* The rows of one field that varies. */
static void retype_varying(const struct stk_output *output, const struct stk_slot_field *field,
                           const struct stk_slot *slot, uint32_t rows)
{
    const uint64_t *lengths = stk_slot_field_lengths(field, slot->lengths);
    for (uint32_t row = 0; row < rows; row++)
        if (lengths[row] <= output->pack.length_max) /* else the batch ends in an error */
            stk_retype_elements(&output->retype, stk_slot_field_row(field, slot->images, row),
                                (size_t)lengths[row] * output->elements);
}

static void pack_field(const struct stk_output *output, const struct stk_slot_field *field,
                       const struct stk_slot *slot, uint32_t batch_size, uint32_t rows)
{
    int64_t *offsets = (int64_t *)(void *)(slot->images + field->offsets_at);
    if (output->retype.convert != NULL)
        retype_varying(output, field, slot, rows);
    const uint64_t entries = stk_pack_rows(&output->pack, field, slot->images,
                                           stk_slot_field_lengths(field, slot->lengths), rows);
    const uint64_t all = stk_pack_pads(&output->pack) ? entries * rows : entries;
    offsets[batch_size + 1] = (int64_t)entries;
    offsets[batch_size + 2] = (int64_t)(all * output->pack.entry_bytes);
}

void stk_finish_slot(const struct stk_finishing *finish, const struct stk_slots *slots,
                     const struct stk_slot *slot, uint32_t rows)
{
    for (uint32_t i = 0; i < slots->fields.count; i++) {
        const struct stk_output *output = &finish->outputs[i];
        const struct stk_slot_field *field = &slots->fields.each[i];
        if (output->varies)
            pack_field(output, field, slot, slots->batch_size, rows);
        else if (output->retype.convert != NULL)
            stk_retype_rows(&output->retype, field, slot->images, output->elements, rows,
                            output->kept ? slot->fresh : NULL);
    }
}
