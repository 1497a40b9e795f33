/* field_plan.h - where the fields of one sample lie: delivered, cached as decoded, cached as stored.
 *
 *   delivered   a row in each field's region of the slot (fields.h)
 *   decoded     one record: | field | length, field that varies | ...      fields with a part only
 *   encoded     one record: | part 0 | part 1 | ...                        each has room for the longest
 *
 * Samples with one part that fills field 0 alone, which does not vary, need none of it: row.c makes their rows on
 * shorter ways, and the cache holds plain rows. Constant once made.
 */
#ifndef STK_PIPELINE_FIELD_PLAN_H
#define STK_PIPELINE_FIELD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/transform/mask.h"
#include "loader/dataset/dataset.h"
#include "loader/pipeline/fields.h"
#include "loader/pipeline/finish.h"

struct stk_field_plan {
    bool several;     /* not of the simple kind */
    size_t row_bytes; /* one sample in a slot: all fields, at their longest */
    /* If several: */
    size_t *record_at;   /* [count] offset of the field's row in a decoded record */
    size_t record_bytes; /* a decoded record */
    /* Masks with the geometry of their image; NULL = no masks, or no transforms. */
    struct stk_mask_plan *masks; /* [field_count]; pixel_bytes 0: the field is no mask */
    bool masks_differ; /* in size, as their images do: a sample's have the size of its image */
    size_t mask_bytes; /* all masks as stored, one after the other */
    size_t mask_scratch_bytes; /* that stk_mask_row() needs */
    size_t part_bytes;         /* from one part to the next in an encoded record */
};

/* sizes: of the rows in a slot; outputs: of the same fields. Field 0 is cached in cached_bytes if that is more than it has as stored (images after
 * resize). framing: of the images; NULL = they are not transformed. Returns 0, STOKER_ENOMEM, or STOKER_ELIMIT: a sample is larger than memory. Destroy either way. */
int stk_field_plan_init(struct stk_field_plan *plan, const stoker_dataset *dataset,
                        const struct stk_field_size *sizes, const struct stk_output *outputs,
                        size_t cached_bytes, const struct stk_framing *framing);
void stk_field_plan_destroy(struct stk_field_plan *plan); /* all zero is allowed */

/* Returns true if the samples are not of the simple kind. */
bool stk_dataset_has_several(const stoker_dataset *dataset);

#endif
