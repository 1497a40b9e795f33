/* fields.h - how the fields of a batch lie in a slot.
 *
 *   slot     | field 0 .... | field 1 .. | ... | offsets | ... | ids | fresh |   each starts on a cache line
 *   field    | row 0 | row 1 | ... | row batch_size - 1 |           at stride_bytes
 *   lengths  batch_size numbers per field that varies               beside the slot, in host memory
 *
 * Workers write rows, and the length of each row of a field that varies: its row has room for the
 * longest, and length x entry_bytes of it are in use. Once a batch is complete, join_rows.h moves
 * the rows together and writes the offsets.
 *
 * Constant once made.
 */
#ifndef STK_PIPELINE_FIELDS_H
#define STK_PIPELINE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#define STK_NO_FIELD UINT32_MAX

enum { STK_OFFSETS_MORE = 3 }; /* numbers beside one per row, in the offsets of a slot */

/* One row of a field, as workers write it. */
struct stk_field_size {
    size_t row_bytes;   /* >= 1; if it varies, the longest row's */
    size_t entry_bytes; /* if it varies, one step along the first axis; else 0 */
};

struct stk_slot_field {
    size_t at; /* offset of row 0 in the slot's memory */
    size_t stride_bytes;
    size_t entry_bytes; /* as above */
    size_t lengths_at;  /* if it varies: index of row 0 in the slot's lengths */
    /* If it varies: batch_size + 1 offsets in the slot's memory, an int64_t each; then what
     * stk_pack_rows() returned, and the bytes that the packed rows take. */
    size_t offsets_at;
};

struct stk_slot_fields {
    struct stk_slot_field *each; /* [count] */
    uint32_t count;
    size_t bytes;   /* all fields and offsets in a slot, a multiple of a cache line */
    size_t lengths; /* numbers per slot; 0 = no field varies */
};

/* Lay out `count` >= 1 fields for batches of batch_size rows. Returns 0 or STOKER_ENOMEM, also if
 * the bytes of a slot cannot be counted; on failure *fields is all zero. */
int stk_slot_fields_init(struct stk_slot_fields *fields, const struct stk_field_size *sizes,
                         uint32_t count, uint32_t batch_size);
void stk_slot_fields_destroy(struct stk_slot_fields *fields); /* all zero is allowed */

/* Row `row` of a field in a slot whose memory starts at `memory`. */
static inline uint8_t *stk_slot_field_row(const struct stk_slot_field *field, uint8_t *memory,
                                          uint32_t row)
{
    return memory + field->at + row * field->stride_bytes;
}

/* The lengths of all rows of a field that varies, among the slot's. */
static inline uint64_t *stk_slot_field_lengths(const struct stk_slot_field *field,
                                               uint64_t *lengths)
{
    return lengths + field->lengths_at;
}

#endif
