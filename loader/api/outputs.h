/* outputs.h - the fields of a batch as the consumer sees them: types, shapes, how rows of different
 * lengths lie.
 *
 *   data set's fields ─▶ options.fields ─▶ outputs ─┬─▶ sizes of a slot's rows (pipeline/fields)
 *                                                   ├─▶ how a complete batch is finished (pipeline/finish)
 *                                                   └─▶ stoker_field of each batch
 *
 * Constant once made.
 */
#ifndef STK_API_OUTPUTS_H
#define STK_API_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/pipeline/batch/batch_layout.h"
#include "loader/pipeline/slots/lease.h"
#include "loader/pipeline/slots/slots.h"

/* The fields of options.blend. */
struct stk_mixed_fields {
    uint32_t label_b; /* or STK_NO_FIELD */
    uint32_t partner, lambda;
};

/* The data set's fields, then those that the loader adds. */
struct stk_outputs {
    struct stk_output *each;
    struct stk_field_size *sizes;
    uint32_t count;
    uint32_t label;                /* the field "label" that batch.labels shows, or STK_NO_FIELD */
    struct stk_mixed_fields mixed; /* if samples are mixed */
    struct stk_finishing finish;   /* shows each */
    size_t row_bytes;              /* all fields as delivered; at most, if they vary */
};

/* Describe the fields of batches by the loader's data set and options, once the rows of field 0 are
 * planned. Returns 0, STOKER_ENOMEM, or STOKER_EINVAL or ETYPE with *error naming the option. */
int stk_outputs_init(struct stk_outputs *outputs, const stoker_loader *loader, stoker_error *error);
void stk_outputs_destroy(struct stk_outputs *outputs); /* all zero is allowed */

/* Set the fields of a lease whose batches lie at `memory`, laid out as a slot; field 0 lies at
 * `images`. On a device `host` is the host's copy of its offsets, stk_outputs_offsets() numbers. */
void stk_outputs_place(const struct stk_outputs *outputs, const struct stk_slots *slots,
                       uint8_t *memory, void *images, const int64_t *host, stoker_field *fields);

/* Complete the fields of a lease for a batch of `rows` rows, from its offsets in host memory. */
void stk_outputs_describe(const struct stk_outputs *outputs, uint32_t batch_size, uint32_t rows,
                          stoker_field *fields);

#endif
