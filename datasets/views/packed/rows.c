/* rows.c - see rows.h.
 *
 *   lengths of all documents ──▶ number of items      survey()
 *   for each block: lengths ──▶ items                 items_of_block()
 *   items ──▶ row of each ──▶ table                   packed_fit.c, write_rows()
 */
#include "datasets/views/packed/rows.h"

#include <assert.h>
#include <inttypes.h>

#include "datasets/views/packed/fit.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum { ASKED_AT_ONCE = 256 }; /* lengths; 4 KiB of the stack */

/* Called for each document in order; a result other than 0 ends the walk. */
typedef int visit(void *context, uint64_t document, uint64_t length);

static int walk(const struct stk_packed_task *task, uint64_t begin, uint64_t end, visit *each,
                void *context, stoker_error *error)
{
    uint64_t ids[ASKED_AT_ONCE];
    uint64_t lengths[ASKED_AT_ONCE];
    int rc = STOKER_OK;
    while (rc == STOKER_OK && begin < end) {
        const uint32_t count =
            end - begin < ASKED_AT_ONCE ? (uint32_t)(end - begin) : ASKED_AT_ONCE;
        for (uint32_t i = 0; i < count; i++)
            ids[i] = begin + i;
        rc = stoker_dataset_lengths(task->documents, task->field, ids, count, lengths, error);
        for (uint32_t i = 0; rc == STOKER_OK && i < count; i++)
            rc = each(context, ids[i], lengths[i]);
        begin += count;
    }
    return rc;
}

/* ---- survey: how many items there are ---------------------------------------------------- */

struct survey {
    const struct stk_packed_task *task;
    struct stk_packed_rows *rows;
    uint64_t block_items; /* items in the block so far */
    uint64_t block_items_max;
    stoker_error *error;
};

static uint64_t items_of(const struct stk_packed_task *task, uint64_t length)
{
    if (length > task->row_length && task->long_documents == STOKER_PACKING_LONG_SPLIT)
        return (length - 1) / task->row_length + 1;
    return length > 0 ? 1 : 0;
}

static int survey_one(void *context, uint64_t document, uint64_t length)
{
    struct survey *survey = context;
    const struct stk_packed_task *task = survey->task;
    struct stk_packed_rows *rows = survey->rows;
    const bool too_long = length > task->row_length;
    struct stk_place place = STK_NOWHERE;
    place.sample = document;
    if (too_long && task->long_documents == STOKER_PACKING_LONG_REFUSE)
        return stk_error_set(survey->error, STOKER_ELIMIT, STOKER_STAGE_OPEN, &place,
                             "packed: the document has %" PRIu64
                             " elements, a row %u; split or crop long ones (long=split, long=crop)",
                             length, task->row_length);
    if (document % task->block == 0)
        survey->block_items = 0;
    survey->block_items += items_of(task, length);
    if (survey->block_items > survey->block_items_max)
        survey->block_items_max = survey->block_items;
    rows->item_count += items_of(task, length);
    rows->long_count += too_long;
    rows->empty_count += length == 0;
    rows->tokens +=
        too_long && task->long_documents == STOKER_PACKING_LONG_CROP ? task->row_length : length;
    return STOKER_OK;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* While blocks are packed. */
struct packing {
    const struct stk_packed_task *task;
    struct stk_packed_rows *rows;
    struct stk_fit fit;
    uint32_t *lengths;  /* [block_items_max] of the block's items */
    uint32_t *row_of;   /* [block_items_max] */
    uint32_t *document; /* [block_items_max] */
    uint32_t *piece;    /* [block_items_max]; NULL if none is split */
    uint64_t *cursor;   /* [block_items_max + 1] where the next item of each row goes */
    uint32_t item_count;
    uint64_t first_room; /* entries of rows->first */
};

static int add_items(void *context, uint64_t document, uint64_t length)
{
    struct packing *packing = context;
    const uint32_t row_length = packing->task->row_length;
    const uint64_t items = items_of(packing->task, length);
    if (items > packing->fit.items_max - packing->item_count)
        return STOKER_ECHANGED;
    for (uint64_t i = 0; i < items; i++) {
        const uint64_t left = length - i * row_length;
        const uint32_t at = packing->item_count++;
        packing->lengths[at] = left < row_length ? (uint32_t)left : row_length;
        packing->document[at] = (uint32_t)document;
        if (packing->piece != NULL)
            packing->piece[at] = (uint32_t)i;
    }
    return STOKER_OK;
}

/* Make room for `more` rows and the end of the last, at least doubling it. */
static int grow_rows(struct packing *packing, uint64_t more)
{
    struct stk_packed_rows *rows = packing->rows;
    const uint64_t needed = rows->row_count + more + 1;
    if (needed <= packing->first_room)
        return STOKER_OK;
    uint64_t room = packing->first_room * 2 > needed ? packing->first_room * 2 : needed;
    room = room > rows->item_count + 1 ? rows->item_count + 1 : room; /* a row has an item */
    uint64_t *first = stk_calloc(room, sizeof(first[0]));
    if (first == NULL)
        return STOKER_ENOMEM;
    for (uint64_t i = 0; i < rows->row_count; i++)
        first[i] = rows->first[i];
    stk_free(rows->first);
    rows->first = first;
    packing->first_room = room;
    return STOKER_OK;
}

/* Append the rows of a block, whose items begin at number `begin`. Items keep their order in a
 * row. */
static void write_rows(struct packing *packing, uint64_t begin, uint32_t row_count)
{
    struct stk_packed_rows *rows = packing->rows;
    uint64_t *cursor = packing->cursor;
    for (uint32_t row = 0; row <= row_count; row++)
        cursor[row] = 0;
    for (uint32_t i = 0; i < packing->item_count; i++)
        cursor[packing->row_of[i] + 1]++;
    cursor[0] = begin;
    for (uint32_t row = 0; row < row_count; row++) {
        rows->first[rows->row_count + row] = cursor[row];
        cursor[row + 1] += cursor[row];
    }
    rows->row_count += row_count;
    rows->first[rows->row_count] = cursor[row_count];
    for (uint32_t i = 0; i < packing->item_count; i++) {
        const uint64_t at = cursor[packing->row_of[i]]++;
        rows->document[at] = packing->document[i];
        if (rows->piece != NULL)
            rows->piece[at] = packing->piece[i];
    }
}

static int pack_blocks(struct packing *packing, stoker_error *error)
{
    const struct stk_packed_task *task = packing->task;
    const uint64_t count = stoker_dataset_get_info(task->documents)->count;
    uint64_t begin = 0;
    int rc = STOKER_OK;
    for (uint64_t at = 0; rc == STOKER_OK && at < count; at += task->block) {
        const uint64_t end = count - at < task->block ? count : at + task->block;
        packing->item_count = 0;
        rc = walk(task, at, end, add_items, packing, error);
        if (rc == STOKER_OK && packing->item_count > packing->rows->item_count - begin)
            rc = STOKER_ECHANGED;
        if (rc != STOKER_OK || packing->item_count == 0)
            continue;
        const uint32_t row_count =
            stk_fit_pack(&packing->fit, packing->lengths, packing->item_count, packing->row_of);
        rc = grow_rows(packing, row_count);
        if (rc != STOKER_OK)
            continue;
        write_rows(packing, begin, row_count);
        begin += packing->item_count;
    }
    if (rc == STOKER_OK && begin != packing->rows->item_count)
        rc = STOKER_ECHANGED;
    return rc;
}

/* ---- life --------------------------------------------------------------------------------- */

static int take_memory(struct packing *packing, uint32_t items_max)
{
    struct stk_packed_rows *rows = packing->rows;
    const bool split = rows->item_count + rows->empty_count >
                       stoker_dataset_get_info(packing->task->documents)->count;
    rows->document = stk_calloc(rows->item_count, sizeof(rows->document[0]));
    packing->lengths = stk_calloc(items_max, sizeof(packing->lengths[0]));
    packing->row_of = stk_calloc(items_max, sizeof(packing->row_of[0]));
    packing->document = stk_calloc(items_max, sizeof(packing->document[0]));
    packing->cursor = stk_calloc(items_max + UINT64_C(1), sizeof(packing->cursor[0]));
    bool has_all = rows->document != NULL && packing->lengths != NULL && packing->row_of != NULL &&
                   packing->document != NULL && packing->cursor != NULL;
    if (split) {
        rows->piece = stk_calloc(rows->item_count, sizeof(rows->piece[0]));
        packing->piece = stk_calloc(items_max, sizeof(packing->piece[0]));
        has_all = has_all && rows->piece != NULL && packing->piece != NULL;
    }
    if (!has_all)
        return STOKER_ENOMEM;
    return stk_fit_init(&packing->fit, packing->task->row_length, items_max);
}

static int pack_all(struct stk_packed_rows *rows, const struct stk_packed_task *task,
                    uint32_t items_max, stoker_error *error)
{
    struct packing packing = { .task = task, .rows = rows };
    int rc = take_memory(&packing, items_max);
    if (rc == STOKER_OK)
        rc = pack_blocks(&packing, error);
    stk_fit_free(&packing.fit);
    stk_free(packing.lengths);
    stk_free(packing.row_of);
    stk_free(packing.document);
    stk_free(packing.piece);
    stk_free(packing.cursor);
    if (rc == STOKER_ENOMEM)
        (void)stk_refuse_spec(error, rc, "packed: the table of %" PRIu64 " documents and pieces",
                              rows->item_count);
    if (rc == STOKER_ECHANGED)
        (void)stk_refuse_spec(error, rc,
                              "packed: the data set gave other lengths when asked again");
    return rc;
}

int stk_packed_rows_make(struct stk_packed_rows *rows, const struct stk_packed_task *task,
                         stoker_error *error)
{
    const uint64_t count = stoker_dataset_get_info(task->documents)->count;
    struct survey survey = { .task = task, .rows = rows, .error = error };
    *rows = (struct stk_packed_rows){ .row_count = 0 };
    assert(task->block >= 1);
    if (count > STK_PACKED_DOCUMENTS_MAX)
        return stk_refuse_spec(error, STOKER_ELIMIT,
                               "packed: %" PRIu64 " documents, at most 2^32 - 1", count);
    int rc = walk(task, 0, count, survey_one, &survey, error);
    if (rc == STOKER_OK && rows->item_count == 0)
        rc = stk_refuse_spec(error, STOKER_EEMPTY, "packed: all %" PRIu64 " documents are empty",
                             count);
    if (rc == STOKER_OK && survey.block_items_max >= UINT32_MAX)
        rc = stk_refuse_spec(error, STOKER_ELIMIT,
                             "packed: %" PRIu64 " documents and pieces in one block",
                             survey.block_items_max);
    if (rc == STOKER_OK)
        rc = pack_all(rows, task, (uint32_t)survey.block_items_max, error);
    if (rc != STOKER_OK)
        stk_packed_rows_free(rows);
    return rc;
}

void stk_packed_rows_free(struct stk_packed_rows *rows)
{
    stk_free(rows->first);
    stk_free(rows->document);
    stk_free(rows->piece);
    *rows = (struct stk_packed_rows){ .row_count = 0 };
}
