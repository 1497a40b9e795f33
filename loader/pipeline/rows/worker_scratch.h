/* worker_scratch.h - a worker's memory for making rows: codec and transform scratch, one decoded
 * image, the reads it orders. */
#ifndef STK_PIPELINE_ROW_MAKER_H
#define STK_PIPELINE_ROW_MAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/gpu/decode_lane.h"
#include "loader/pipeline/plan/pipeline.h"
#include "loader/pipeline/report/ledger.h"
#include "loader/pipeline/rows/codecs.h"
#include "loader/pipeline/slots/span.h"

/* A row some of whose reads were still under way when a part failed. */
struct stk_failed_row {
    struct stk_span *span; /* NULL = unused */
    uint32_t row;
    uint32_t part; /* the lowest bad one: the same in every run */
    stoker_error error;
    char what[STK_DETAIL_BYTES];
};

struct stk_row_maker {
    struct stk_pipeline *pipeline;
    struct stk_ledger_entry *ledger;
    bool may_read;
    bool in_next; /* used by the consumer inside next(), which may be interrupted */
    struct stk_codecs codecs;
    /* The transform's scratch and an image; only as many pages as the largest image needs are
     * touched. */
    struct stk_region scratch;
    void *transform; /* scratch of the transform plan, inside scratch */
    uint8_t *image;  /* one decoded row or image, inside scratch */
    uint8_t *notes;  /* room for stoker_notes, inside scratch */
    uint8_t *masks;  /* decoded masks, inside scratch, and the scratch of their geometry */
    void *mask_scratch;
    struct stk_hook_scratch hooks;
    struct stk_decode_lane *lane; /* NULL: the CPU decodes all images */
    stoker_row *rows;             /* [field_count], of the part being decoded */
    /* Reads that the row that was begun or continued last needs now. */
    struct stk_read_order *orders; /* [part_count] */
    uint32_t order_count;
    struct stk_failed_row *failed; /* [failed_max]; NULL with one part */
    uint32_t failed_max;
    uint32_t failed_count; /* in use; 0 nearly always, so that good rows need not look */
};

/* Allocate the memory. Without `reads` no row may be read. Returns 0 or STOKER_ENOMEM; destroy
 * either way. */
int stk_row_maker_init(struct stk_row_maker *maker, struct stk_pipeline *pipeline,
                       struct stk_ledger_entry *ledger, bool reads);
void stk_row_maker_destroy(struct stk_row_maker *maker); /* all zero is allowed */

#endif
