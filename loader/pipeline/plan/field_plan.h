/* field_plan.h - the route of each part, and where the fields of one sample lie.
 *
 *   delivered   a row in each field's region of the slot (fields.h)
 *   decoded     one record: | field | length, field that varies | ...   fields with a part
 *   encoded     one record: | part 0 | part 1 | ...                  each has room for the longest
 *
 * The record of a sample with one field or one part is just its bytes. Constant once made.
 */
#ifndef STK_PIPELINE_FIELD_PLAN_H
#define STK_PIPELINE_FIELD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/transform/mask/mask.h"
#include "loader/dataset/dataset.h"
#include "loader/pipeline/batch/batch_layout.h"
#include "loader/pipeline/plan/pipeline_plan.h"
#include "loader/pipeline/slots/fields.h"

/* One part of every sample. */
struct stk_part_plan {
    enum stk_route route;
    struct stk_part_fields own;
    size_t raw_bytes; /* if it is raw: of its fields; SIZE_MAX, which no part has, if one varies */
};

struct stk_field_plan {
    size_t row_bytes;            /* one sample in a slot: all fields, at their longest */
    size_t stored_bytes;         /* one sample as stored, at its longest: fields with a part */
    struct stk_part_plan *parts; /* [part_count] */
    size_t *record_at;           /* [field_count] offset of the field's row in a decoded record */
    size_t record_bytes;         /* a decoded record */
    bool record_has_gaps;        /* bytes of a decoded record may be unused */
    size_t part_bytes;           /* from one part to the next in an encoded record */
    /* Masks with the geometry of their image; NULL = no masks, or no transforms. */
    struct stk_mask_plan *masks; /* [field_count]; pixel_bytes 0: the field is no mask */
    bool masks_differ; /* in size, as their images do: a sample's have the size of its image */
    size_t mask_bytes; /* all masks as stored, one after the other */
    size_t mask_scratch_bytes; /* that stk_mask_row() needs */
};

struct stk_field_plan_options {
    const stoker_dataset *dataset;
    const struct stk_field_size *sizes; /* [field_count] of the rows in a slot */
    const struct stk_output *outputs;   /* [field_count] */
    const struct stk_part_facts *parts; /* [part_count]; as_stored is set by the plan */
    bool first_is_copied;               /* field 0 is delivered as stored */
    size_t cached_bytes; /* field 0 in a decoded record: images may be cached resized */
    const struct stk_framing *framing; /* NULL = images are not transformed */
};

/* Returns 0, STOKER_ENOMEM, or STOKER_ELIMIT: a sample is larger than memory. Destroy either
 * way. */
int stk_field_plan_init(struct stk_field_plan *plan, const struct stk_field_plan_options *options);
void stk_field_plan_destroy(struct stk_field_plan *plan); /* all zero is allowed */

/* Returns true if the bytes of a part are its row: not decoded, but perhaps verified. */
static inline bool stk_part_is_row(const stoker_part *part)
{
    return part->codec == NULL || (part->codec->flags & STOKER_CODEC_ROW) != 0;
}

/* Returns true if a part's bytes are delivered as they are stored: they may be read straight to
 * the row of its field. */
static inline bool stk_part_is_as_stored(const struct stk_part_plan *plan, const stoker_part *part)
{
    return plan->route == STK_ROUTE_READ_IN_PLACE && stk_part_is_row(part) &&
           part->extent.bytes == plan->raw_bytes;
}

static inline bool stk_field_is_mask(const struct stk_field_plan *plan, uint32_t field)
{
    return plan->masks != NULL && plan->masks[field].pixel_bytes > 0;
}

#endif
