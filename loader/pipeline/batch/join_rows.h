/* join_rows.h - brings the rows of a field that varies together, and changes its type, once its
 * batch is complete.
 *
 *   written   | aaa.... | bb..... | ccccc.. |    at stride_bytes, with lengths 3, 2, 5
 *   packed    | aaabbccccc |                     offsets 0, 3, 5, 10
 *   padded    | aaa__ | bb___ | ccccc |          the same offsets
 *
 *   joined    0 3 5 | 0 2 5  ─▶ 0 3 5 7 10       of rows of 5: offsets 0, 2, 4
 *
 * Rows only move forward, so this works in place. The slot belongs to one thread meanwhile.
 */
#ifndef STK_PIPELINE_PACK_H
#define STK_PIPELINE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/field.h>

#include "kernels/convert/convert.h"
#include "loader/pipeline/slots/fields.h"

/* How rows of different lengths lie in a batch. */
struct stk_pack {
    stoker_field_form form;
    uint64_t length_max;
    uint64_t row_length; /* for STOKER_FIELD_FORM_JOINED: elements of a row of field 0, >= 1 */
    uint32_t multiple;   /* for STOKER_FIELD_FORM_PADDED_MULTIPLE, >= 1 */
    size_t entry_bytes;  /* one step along the first axis, as delivered */
    size_t pad_bytes;    /* bytes of an element, 1..8 */
    uint8_t pad[8];      /* the element that fills up a row */
};

/* Returns true if all rows of a batch get one length. */
static inline bool stk_pack_pads(const struct stk_pack *pack)
{
    return pack->form != STOKER_FIELD_FORM_PACKED && pack->form != STOKER_FIELD_FORM_JOINED;
}

/* Elements from one type to another, in place. */
struct stk_retype {
    stk_elements_fn *convert; /* NULL = they stay as stored */
    size_t from_bytes, to_bytes;
    /* Not NULL: element i becomes fmaf(value, factor[i % period], bias[i % period]) as float32,
     * which `convert` then takes. As kernels/convert does with rows that do not vary. */
    stk_elements_fn *to_float;
    const float *factor, *bias;
    uint32_t period;
};

/* Convert `count` elements that begin at `at`, where a row begins and has room for them in either
 * type. */
void stk_retype_elements(const struct stk_retype *retype, uint8_t *at, size_t count);

/* Convert `rows` rows of `elements` elements of a field that does not vary; they are dense
 * afterwards. fresh: those that are there are not 0; NULL = all are. */
void stk_retype_rows(const struct stk_retype *retype, const struct stk_slot_field *field,
                     uint8_t *memory, size_t elements, uint32_t rows, const uint8_t *fresh);

/* The most entries of a row as it lies in a batch: the stride of a slot's rows. */
uint64_t stk_pack_length_max(const struct stk_pack *pack);

/* Pack, pad or join `rows` rows of a field in a slot, and write its offsets, rows + 1 of them.
 * Returns the entries of a row if it pads; else of all rows together, and of JOINED one more. */
uint64_t stk_pack_rows(const struct stk_pack *pack, const struct stk_slot_field *field,
                       uint8_t *memory, const uint64_t *lengths, uint32_t rows);

#endif
