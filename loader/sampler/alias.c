/* alias.c - see alias.h.
 *
 * With n ids, masses times n, and columns as high as the sum of masses, the columns hold exactly
 * all of it. An id with less than a column is small, any other is large. Each step closes the
 * column of a small id with a part of a large one, which may become small by that:
 *
 *   column i   | own mass of i | rest: mass of a large id |
 *
 * In integers nothing is left over: when there is no small id any more, each large one fills its
 * own column.
 */
#include "loader/sampler/alias.h"

#include <assert.h>
#include <math.h>

#include "loader/base/memory/memory.h"

#include <stoker/error.h>

__extension__ typedef unsigned __int128 wide;

enum { SUM_BITS = 62 }; /* the masses add up to at most 2^62 */

/* What is needed while the table is made. */
struct build {
    uint64_t count;
    uint64_t height;
    wide *left;      /* [count] mass of an id, times count, that no column has yet */
    uint64_t *queue; /* [count] small ids from the front, large ones from the back */
    uint64_t smalls; /* in the queue */
    uint64_t larges;
};

static uint64_t mass_of(double weight, int shift)
{
    return (uint64_t)ldexp(weight, shift); /* exact but for the cut */
}

static uint64_t sum_of(const double *weights, uint64_t count, int shift)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += mass_of(weights[i], shift);
    return sum;
}

/* Choose the largest s with which the masses surely add up to at most 2^62. */
static int choose_shift(const double *weights, uint64_t count)
{
    double most = 0.0;
    int exponent;
    int shift = SUM_BITS;
    for (uint64_t i = 0; i < count; i++)
        most = weights[i] > most ? weights[i] : most;
    (void)frexp(most, &exponent); /* every weight is below 2^exponent */
    for (uint64_t rest = count - 1; rest > 0; rest /= 2)
        shift--;
    shift -= exponent;
    /* That would do if all were as large as the largest. A cut loses less than 1 per weight. */
    const uint64_t sum = sum_of(weights, count, shift) + count;
    int more = 0;
    while (sum << more <= (UINT64_C(1) << (SUM_BITS - 1)))
        more++;
    return shift + more;
}

static void enqueue(struct build *build, uint64_t id)
{
    if (build->left[id] < build->height)
        build->queue[build->smalls++] = id;
    else
        build->queue[build->count - ++build->larges] = id;
}

static void fill_columns(struct build *build, struct stk_alias_column *columns)
{
    for (uint64_t id = 0; id < build->count; id++)
        enqueue(build, id);
    while (build->smalls > 0) {
        assert(build->larges > 0); /* the rest of the mass is more than the open columns hold */
        const uint64_t small = build->queue[--build->smalls];
        const uint64_t large = build->queue[build->count - build->larges--];
        columns[small].threshold = (uint64_t)build->left[small];
        columns[small].other = large;
        build->left[large] -= build->height - build->left[small];
        enqueue(build, large);
    }
    for (; build->larges > 0; build->larges--) {
        const uint64_t large = build->queue[build->count - build->larges];
        assert(build->left[large] == build->height);
        columns[large].threshold = build->height;
        columns[large].other = large;
    }
}

static int make_columns(struct stk_alias *alias, struct build *build, const double *weights,
                        int shift)
{
    build->left = stk_calloc((size_t)build->count, sizeof(build->left[0]));
    build->queue = stk_calloc((size_t)build->count, sizeof(build->queue[0]));
    if (build->left == NULL || build->queue == NULL)
        return STOKER_ENOMEM;
    for (uint64_t id = 0; id < build->count; id++)
        build->left[id] = (wide)mass_of(weights[id], shift) * build->count;
    fill_columns(build, alias->columns);
    return STOKER_OK;
}

int stk_alias_make(struct stk_alias *alias, const double *weights, uint64_t count)
{
    *alias = (struct stk_alias){ .count = count };
    const int shift = choose_shift(weights, count);
    struct build build = { .count = count, .height = sum_of(weights, count, shift) };
    if (build.height == 0)
        return STOKER_EINVAL;
    alias->height = build.height;
    alias->columns = stk_calloc((size_t)count, sizeof(alias->columns[0]));
    const int rc =
        alias->columns == NULL ? STOKER_ENOMEM : make_columns(alias, &build, weights, shift);
    stk_free(build.left);
    stk_free(build.queue);
    if (rc != STOKER_OK)
        stk_alias_free(alias);
    return rc;
}

void stk_alias_free(struct stk_alias *alias)
{
    stk_free(alias->columns);
    *alias = (struct stk_alias){ .columns = NULL };
}
