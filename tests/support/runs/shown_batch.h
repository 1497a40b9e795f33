/* shown_batch.h - every byte of a batch, whichever device it lies on: as one hash, and as a hash
 * per row that depends neither on the other rows nor on how they lie (packed, padded, to which
 * length).
 */
#ifndef STK_TEST_SHOWN_BATCH_H
#define STK_TEST_SHOWN_BATCH_H

#include "support/runs/scenario.h"

/* A batch whose pointers the host may follow. */
struct stk_shown_batch {
    const stoker_dataset *dataset;
    stoker_batch batch;
    stoker_field fields[STOKER_FIELDS_MAX + 16]; /* with those of options.blend */
};

/* Waits until the batch is where it lies; replaces pointers to a device's memory. */
typedef void stk_show(struct stk_shown_batch *shown);

/* show NULL = the batch lies in host memory. */
static inline void stk_shown_begin(struct stk_shown_batch *shown, const stoker_dataset *dataset,
                                   const stoker_batch *batch, stk_show *show)
{
    shown->dataset = dataset;
    shown->batch = *batch;
    memcpy(shown->fields, batch->fields, batch->field_count * sizeof(shown->fields[0]));
    if (show != NULL)
        show(shown);
}

/* Bytes of one element of axis `axis` of an array: of a row with axis 0, of an entry of it with
 * axis 1. */
static inline size_t stk_step_bytes(const stoker_tensor *values, uint32_t axis)
{
    size_t bytes = stoker_dtype_bytes(values->dtype);
    for (uint32_t inner = axis + 1; inner < values->rank; inner++)
        bytes *= (size_t)values->shape[inner];
    return bytes;
}

static inline uint64_t stk_shown_row(const struct stk_shown_batch *shown, uint32_t row)
{
    uint64_t hash = shown->batch.ids[row];
    for (uint32_t i = 0; i < shown->batch.field_count; i++) {
        const stoker_field *field = &shown->fields[i];
        const uint8_t *values = field->values.data;
        const size_t step = stk_step_bytes(&field->values, 0);
        if (field->offsets == NULL) {
            hash = stk_hash_bytes(hash, values + row * step, step);
            continue;
        }
        const bool padded = field->values.rank > stoker_dataset_field(shown->dataset, i)->rank;
        const size_t entry = padded ? stk_step_bytes(&field->values, 1) : step;
        const uint64_t length = (uint64_t)(field->offsets[row + 1] - field->offsets[row]);
        const uint8_t *at = values + (padded ? row * step : (size_t)field->offsets[row] * entry);
        hash = stk_hash_bytes(hash, &length, sizeof(length));
        hash = stk_hash_bytes(hash, at, length * entry);
    }
    return hash;
}

/* Hash of all that a batch says and holds: padding and both copies of the offsets, too. */
static inline uint64_t stk_shown_hash(const struct stk_shown_batch *shown)
{
    const stoker_batch *batch = &shown->batch;
    const uint64_t numbers[] = { batch->epoch, batch->index, batch->count, batch->padded };
    uint64_t hash = stk_hash_bytes(0, numbers, sizeof(numbers));
    hash = stk_hash_bytes(hash, batch->ids, batch->count * sizeof(batch->ids[0]));
    hash = stk_hash_bytes(hash, batch->device_ids, batch->count * sizeof(batch->ids[0]));
    for (uint32_t i = 0; i < batch->field_count; i++) {
        const stoker_field *field = &shown->fields[i];
        const stoker_tensor *values = &field->values;
        hash = stk_hash_bytes(hash, values->shape, values->rank * sizeof(values->shape[0]));
        hash = stk_hash_bytes(hash, values->data,
                              stk_step_bytes(values, 0) * (size_t)values->shape[0]);
        if (field->offsets == NULL)
            continue;
        const size_t offsets = (batch->count + 1) * sizeof(field->offsets[0]);
        hash = stk_hash_bytes(hash, field->offsets, offsets);
        hash = stk_hash_bytes(hash, field->device_offsets, offsets);
    }
    return hash;
}

#endif
