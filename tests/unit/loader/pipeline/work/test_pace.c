/* test_pace.c - how much a worker takes at once, by how long its rows took. */
#include "loader/pipeline/work/pace.h"
#include "support/leaks.h"

enum { SHARE_ROWS = 8, SHARES = 32 };

/* A worker that makes what it takes, each row in row_ns; returns the shares that it takes in the
 * end. */
static uint32_t shares_after(struct stk_pace *pace, uint64_t row_ns, int turns)
{
    uint64_t rows = pace->rows;
    uint64_t busy_ns = pace->busy_ns;
    uint32_t shares = 0;
    for (int i = 0; i < turns; i++) {
        const uint32_t before = pace->shares;
        shares = stk_pace_step(pace, rows, busy_ns, SHARE_ROWS, SHARES);
        cr_assert_geq(shares, 1);
        cr_assert_leq(shares, SHARES);
        cr_assert_leq(shares, before == 0 ? 2 : 2 * before);
        rows += (uint64_t)shares * SHARE_ROWS;
        busy_ns += shares * SHARE_ROWS * row_ns;
    }
    return shares;
}

CleanTest(pace, begins_with_one_part)
{
    struct stk_pace pace = { 0 };
    cr_assert_eq(stk_pace_step(&pace, 0, 0, SHARE_ROWS, SHARES), 1);
    cr_assert_eq(stk_pace_step(&pace, 0, 0, SHARE_ROWS, SHARES), 1, "nothing was made meanwhile");
}

CleanTest(pace, takes_about_100_us_of_work)
{
    static const struct {
        uint64_t row_ns;
        uint32_t shares;
    } cases[] = { { 5000000, 1 }, { 12500, 1 }, { 6250, 2 }, { 1000, 12 }, { 100, SHARES } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_pace pace = { 0 };
        cr_assert_eq(shares_after(&pace, cases[i].row_ns, 200), cases[i].shares, "%lu ns",
                     (unsigned long)cases[i].row_ns);
    }
}

/* The page cache served the first rows, a network the later ones. */
CleanTest(pace, takes_less_as_soon_as_rows_are_slow)
{
    struct stk_pace pace = { 0 };
    cr_assert_eq(shares_after(&pace, 100, 200), SHARES);
    cr_assert_eq(shares_after(&pace, 5000000, 3), 1);
}

CleanTest(pace, whole_tickets_are_gathered)
{
    struct stk_pace pace = { 0 };
    (void)shares_after(&pace, 5000000, 10);
    pace.gathers = true;
    for (int turn = 0; turn < 5; turn++)
        (void)stk_pace_step(&pace, pace.rows + 1, pace.busy_ns + 1, SHARE_ROWS, SHARES);
    cr_assert_eq(pace.shares, SHARES);
}
