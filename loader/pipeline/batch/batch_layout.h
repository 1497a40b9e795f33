/* batch_layout.h - turns a complete slot into the batch that is delivered: types of fields, packing
 * and padding.
 *
 *   last row done ─▶ hooks ─▶ finish ─▶ READY      by the worker that did the last row, if no row failed
 *   READY ─▶ gaps of skipped rows closed ─▶ finish   by the consumer, if some did
 */
#ifndef STK_PIPELINE_FINISH_H
#define STK_PIPELINE_FINISH_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/field.h>

#include "loader/pipeline/batch/join_rows.h"
#include "loader/pipeline/slots/slots.h"

/* One field of a batch as it is delivered. */
struct stk_output {
    stoker_field view; /* without memory; values.shape[0] is unset */
    bool varies;
    struct stk_pack pack; /* if it varies */
    struct stk_retype retype;
    uint8_t fill[8]; /* a mask's element, as stored, where its image has no pixel */
    size_t elements; /* in a row; if it varies, in an entry */
    bool kept;       /* rows that a GPU holds are not in the slot: only fresh ones are finished */
};

struct stk_finishing {
    const struct stk_output *outputs; /* one per field of the slots */
    bool needed;                      /* false: slots are delivered as workers fill them */
};

/* Finish a slot of `rows` rows, all of them good. One thread, before the batch is lent or sent. */
void stk_finish_slot(const struct stk_finishing *finish, const struct stk_slots *slots,
                     const struct stk_slot *slot, uint32_t rows);

#endif
