/* test_packed_fit.c - best-fit decreasing: the same rows as by the definition, and how much of them
 * is padding.
 *
 * Method: a slow packer that searches all rows for each document says what the fast one must do,
 * ties included. The share of padding is measured on a log-normal distribution of lengths, like
 * that of web pages.
 */
#include <math.h>

#include <stoker/stoker.h>

#include "datasets/views/packed/fit.h"
#include "datasets/views/packed/rows.h"
#include "loader/base/rng.h"
#include "support/sweep.h"

/* ---- the definition --------------------------------------------------------------------- */

struct slow_row {
    uint32_t room;
    uint64_t changed; /* when its room became what it is */
    uint32_t number;
};

/* Longest first; the row with the least room that is enough, of several the one that came to it
 * last. */
static uint32_t pack_slowly(const uint32_t *lengths, uint32_t count, uint32_t row_length,
                            uint32_t *row_of)
{
    struct slow_row *rows = calloc(count, sizeof(rows[0]));
    uint32_t used = 0;
    uint64_t now = 0;
    for (uint32_t length = row_length; length > 0; length--)
        for (uint32_t i = 0; i < count; i++) {
            if (lengths[i] != length)
                continue;
            uint32_t best = UINT32_MAX;
            for (uint32_t row = 0; row < used; row++)
                if (rows[row].room >= length &&
                    (best == UINT32_MAX || rows[row].room < rows[best].room ||
                     (rows[row].room == rows[best].room && rows[row].changed > rows[best].changed)))
                    best = row;
            if (best == UINT32_MAX) {
                best = used++;
                rows[best].room = row_length;
            }
            rows[best].room -= length;
            rows[best].changed = ++now;
            row_of[i] = best;
        }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *number = &rows[row_of[i]].number;
        *number = *number == 0 ? ++seen : *number;
        row_of[i] = *number - 1;
    }
    free(rows);
    return used;
}

static void expect_definition(uint32_t row_length, uint32_t count, uint64_t seed)
{
    uint32_t *lengths = calloc(count, sizeof(lengths[0]));
    uint32_t *expected = calloc(count, sizeof(expected[0]));
    uint32_t *found = calloc(count, sizeof(found[0]));
    struct stk_fit fit;
    for (uint32_t i = 0; i < count; i++)
        lengths[i] = 1 + (uint32_t)(stk_mix64(seed + i) % row_length);
    cr_assert_eq(stk_fit_init(&fit, row_length, count), STOKER_OK);
    const uint32_t rows = pack_slowly(lengths, count, row_length, expected);
    /* Twice, since a workspace is used for block after block. */
    for (int turn = 0; turn < 2; turn++) {
        cr_assert_eq(stk_fit_pack(&fit, lengths, count, found), rows);
        cr_assert_arr_eq(found, expected, count * sizeof(found[0]), "row length %u", row_length);
    }
    stk_fit_free(&fit);
    free(lengths);
    free(expected);
    free(found);
}

CleanTest(packed_fit, packs_as_the_definition_says)
{
    static const uint32_t row_lengths[] = { 1,   2,   3,    62,   63,   64,    65,
                                            127, 128, 4095, 4096, 4097, 300000 };
    for (size_t i = 0; i < sizeof(row_lengths) / sizeof(row_lengths[0]); i++)
        for (uint32_t count = 1; count < 400; count = count * 3 + 1)
            expect_definition(row_lengths[i], count, 1000 * i);
}

/* Each child of a node of the search tree is reached, and rooms over all its levels. */
CleanTest(packed_fit, finds_the_only_room_that_is_enough)
{
    const uint32_t row_length = STK_FIT_LENGTH_MAX;
    struct stk_fit fit;
    cr_assert_eq(stk_fit_init(&fit, row_length, 4), STOKER_OK);
    for (uint32_t room = 1; room < row_length / 2; room = room * 2 + room % 7 + 1) {
        /* Rows with `room` and with a little more left; then a document for each. */
        const uint32_t lengths[4] = { row_length - room, row_length - room - 1, room, room + 1 };
        uint32_t row_of[4];
        if (row_length - room - 1 <= room + 1)
            break;
        cr_assert_eq(stk_fit_pack(&fit, lengths, 4, row_of), 2);
        cr_assert_eq(row_of[0], row_of[2], "room %u", room);
        cr_assert_eq(row_of[1], row_of[3], "room %u", room);
    }
    stk_fit_free(&fit);
}

/* ---- padding -------------------------------------------------------------------------------- */

/* Lengths are drawn by the method of Box and Muller: log-normal, median 400, sigma 1.1, up to
 * 2048. */
static uint64_t drawn_length(uint64_t i)
{
    const double u = ((double)(stk_mix64(2 * i) >> 11) + 1.0) / 9007199254740993.0;
    const double v = (double)(stk_mix64(2 * i + 1) >> 11) / 9007199254740992.0;
    const double length = exp(log(400.0) + 1.1 * sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
    return length < 1.0 ? 1 : length > 2048.0 ? 2048 : (uint64_t)length;
}

/* A data set of lengths alone. */
static int describe(const void *self, stoker_dataset_info *out)
{
    out->count = *(const uint64_t *)self;
    out->field_count = 1;
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    (void)self;
    (void)field;
    out->name = "tokens";
    out->dtype = STOKER_DTYPE_UINT16;
    out->rank = 1;
    out->shape[0] = 2048;
    out->varies = true;
    out->part = STOKER_NO_PART;
    return STOKER_OK;
}

static int lengths_of(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                      uint64_t *out)
{
    (void)self;
    (void)field;
    for (uint32_t i = 0; i < count; i++)
        out[i] = drawn_length(ids[i]);
    return STOKER_OK;
}

static int make(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                stoker_error *error)
{
    (void)self;
    (void)id;
    (void)rows;
    (void)rng;
    (void)error;
    return STOKER_ENOTSUP;
}

static const stoker_dataset_ops lengths_alone = { .struct_size = sizeof(stoker_dataset_ops),
                                                  .name = "lengths",
                                                  .describe = describe,
                                                  .field = field_of,
                                                  .make = make,
                                                  .lengths = lengths_of };

/* Every document lies in one row, whole and once, and no row is too full. Returns the share of
 * padding. */
static double pack_drawn(uint64_t count, uint64_t block)
{
    stoker_dataset *documents = NULL;
    stoker_error error = { .message = "" };
    struct stk_packed_rows rows;
    cr_assert_eq(stoker_dataset_create(&documents, &lengths_alone, &count, &error), STOKER_OK, "%s",
                 error.message);
    const struct stk_packed_task task = { .documents = documents,
                                          .row_length = 2048,
                                          .block = block };
    cr_assert_eq(stk_packed_rows_make(&rows, &task, &error), STOKER_OK, "%s", error.message);
    uint8_t *visits = calloc(count, 1);
    cr_assert_eq(rows.item_count, count);
    cr_assert_null(rows.piece);
    cr_assert_eq(rows.first[0], 0);
    cr_assert_eq(rows.first[rows.row_count], count);
    uint64_t tokens = 0;
    for (uint64_t row = 0; row < rows.row_count; row++) {
        uint64_t length = 0;
        cr_assert_lt(rows.first[row], rows.first[row + 1]);
        for (uint64_t item = rows.first[row]; item < rows.first[row + 1]; item++) {
            cr_assert_lt(rows.document[item], count);
            cr_assert_eq(rows.document[item] / block, rows.document[rows.first[row]] / block);
            cr_assert_eq(visits[rows.document[item]]++, 0); /* with the count: exactly once */
            length += drawn_length(rows.document[item]);
        }
        cr_assert_leq(length, 2048);
        tokens += length;
    }
    cr_assert_eq(tokens, rows.tokens);
    const double padding = 1.0 - (double)tokens / (2048.0 * (double)rows.row_count);
    free(visits);
    stk_packed_rows_free(&rows);
    stoker_dataset_close(&documents);
    return padding;
}

CleanTest(packed_fit, wastes_less_than_a_hundredth_when_all_are_packed_together)
{
    const double padding = pack_drawn(150000, 150000);
    cr_assert_lt(padding, 0.01, "%g", padding);
}

CleanTest(packed_fit, wastes_little_in_blocks)
{
    const double padding = pack_drawn(150000, 65536);
    cr_assert_lt(padding, 0.03, "%g", padding);
    const double small = pack_drawn(20000, 1024);
    cr_assert_lt(small, 0.05, "%g", small);
    cr_assert_gt(small, padding);
}

CleanTest(packed_fit, survives_each_allocation_failure)
{
    struct stk_fit fit;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY, .silent = true };
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_fit_init(&fit, 5000, 10);
    stk_fit_free(&fit);
}
