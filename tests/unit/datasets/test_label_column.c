/* test_label_column.c - a column gives the labels that it was made from, whatever their width, or
 * none. */
#include "datasets/label_column.h"
#include "loader/base/fault.h"
#include "support/leaks.h"

#include <stoker/error.h>

enum { COUNT = 1000 };

/* Labels 0..most - 1 in turn; *self is `most`. */
static int64_t in_turn(const void *self, uint64_t id)
{
    return (int64_t)(id * 7 % *(const uint64_t *)self);
}

static int64_t one_below_zero(const void *self, uint64_t id)
{
    (void)self;
    return id == COUNT / 2 ? -1 : 0;
}

static int64_t one_too_wide(const void *self, uint64_t id)
{
    (void)self;
    return id == COUNT - 1 ? UINT16_MAX + 1 : 0;
}

static void check(uint64_t most, bool narrow)
{
    struct stk_label_column column;
    const uint64_t ids[] = { 0, COUNT - 1, 17, 17, 500 };
    int64_t labels[5] = { 0 };
    cr_assert_eq(stk_label_column_make(&column, COUNT, in_turn, &most), STOKER_OK);
    cr_assert_eq(column.narrow != NULL, narrow);
    cr_assert_eq(column.wide != NULL, !narrow);
    cr_assert(stk_label_column_take(&column, ids, 5, labels));
    for (int i = 0; i < 5; i++)
        cr_assert_eq(labels[i], in_turn(&most, ids[i]));
    stk_label_column_free(&column);
    cr_assert(!stk_label_column_take(&column, ids, 5, labels));
}

CleanTest(label_column, gives_back_what_it_was_made_from)
{
    check(1, true);
    check(10, true);
    check(256, true);
    check(257, false);
    check(1000, false);
}

CleanTest(label_column, labels_that_do_not_fit_make_none)
{
    struct stk_label_column column;
    const uint64_t id = 0;
    int64_t label = 5;
    cr_assert_eq(stk_label_column_make(&column, COUNT, one_below_zero, NULL), STOKER_OK);
    cr_assert(!stk_label_column_take(&column, &id, 1, &label));
    cr_assert_eq(stk_label_column_make(&column, COUNT, one_too_wide, NULL), STOKER_OK);
    cr_assert(!stk_label_column_take(&column, &id, 1, &label));
    cr_assert_eq(label, 5);
    stk_label_column_free(&column);
}
