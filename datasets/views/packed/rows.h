/* rows.h - which documents each row holds: a table of all rows, made at opening.
 *
 *   documents   | block 0: `block` documents | block 1 | ...            packed one block at a time
 *   items       a document, or each piece of one longer than a row; none if it is empty
 *   rows        row r holds items first[r] .. first[r + 1]      of block 0, of block 1, ...
 *
 * A table of all rows finds any row in O(1), without a lock and without packing anything again: 4
 * bytes per document and 8 per row, or 8 and 8 if documents were split. The other way, counting the
 * rows of each block and packing a block when one of its rows is asked for, must pack all blocks
 * once at opening as well, to count; and a loader that shuffles asks for rows of all blocks in
 * turn, so that it would pack a block for nearly every row, or keep all of them after all.
 */
#ifndef STK_DATASETS_VIEWS_PACKED_ROWS_H
#define STK_DATASETS_VIEWS_PACKED_ROWS_H

#include <stdint.h>
#include <stoker/views.h>

#define STK_PACKED_DOCUMENTS_MAX UINT32_MAX /* so that their numbers have 4 bytes */

struct stk_packed_rows {
    uint64_t row_count;
    uint64_t item_count;
    uint64_t *first;    /* [row_count + 1] */
    uint32_t *document; /* [item_count] */
    uint32_t *piece;    /* [item_count] 0, 1, ... of its document; NULL = all are 0 */

    uint64_t tokens;      /* elements in all rows, without padding */
    uint64_t empty_count; /* documents without an element */
    uint64_t long_count;  /* documents longer than a row */
};

/* What is packed. */
struct stk_packed_task {
    const stoker_dataset *documents;
    uint32_t field;      /* its lengths count */
    uint32_t row_length; /* 1..STK_FIT_LENGTH_MAX */
    uint64_t block;      /* documents, >= 1 */
    stoker_long_documents long_documents;
};

/* Pack all documents. On failure *rows is all zero. Errors: STOKER_EEMPTY (no element at all),
 * STOKER_ELIMIT (too many documents or items, or one that is too long and must not be),
 * STOKER_ENOMEM, those of stoker_dataset_lengths(). */
int stk_packed_rows_make(struct stk_packed_rows *rows, const struct stk_packed_task *task,
                         stoker_error *error);
void stk_packed_rows_free(struct stk_packed_rows *rows); /* all zero is allowed */

#endif
