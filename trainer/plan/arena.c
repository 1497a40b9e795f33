/* arena.c - offsets: buffers that are alive at one time do not overlap; others may share bytes.
 *
 *   bytes ^   +-------+  +----+
 *         |   |   b   |  | d  |      Each is put into the smallest hole that fits,
 *         |   +---+---+--+----+      or on top.
 *         |   | a |    c      |
 *         +---+---+-----------+--> operations
 *
 * Best fit is tried in order of time, which is fast and tight for chains, and, if that wastes
 * bytes, in order of size, large buffers first; the smaller arena wins.
 */
#include "trainer/plan/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory/memory.h"

/* Indices of the buffers with an offset, sorted by it. */
struct placed {
    uint32_t *index;
    uint32_t count;
};

static void insert(struct placed *placed, uint32_t at, uint32_t buffer)
{
    memmove(placed->index + at + 1, placed->index + at,
            (placed->count - at) * sizeof(*placed->index));
    placed->index[at] = buffer;
    placed->count++;
}

static bool lives_meet(const struct stk_buffer *a, const struct stk_buffer *b)
{
    return a->first_op <= b->last_op && b->first_op <= a->last_op;
}

/* Puts a buffer into the smallest hole between the placed ones that are alive at the same time.
 * Returns its end. */
static uint64_t fit(struct stk_plan *plan, struct placed *placed, uint32_t buffer)
{
    struct stk_buffer *b = &plan->buffers[buffer];
    uint64_t end = 0; /* largest end so far */
    uint64_t best_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < placed->count; i++) {
        const struct stk_buffer *other = &plan->buffers[placed->index[i]];
        if (!lives_meet(b, other))
            continue;
        if (other->offset >= end + b->bytes && other->offset - end < best_bytes) {
            best_bytes = other->offset - end;
            b->offset = end;
        }
        if (other->offset + other->bytes > end)
            end = other->offset + other->bytes;
    }
    if (best_bytes == UINT64_MAX)
        b->offset = end;

    uint32_t below = 0; /* binary search: all before it have a smaller offset */
    for (uint32_t above = placed->count; below < above;) {
        const uint32_t middle = below + (above - below) / 2;
        if (plan->buffers[placed->index[middle]].offset < b->offset)
            below = middle + 1;
        else
            above = middle;
    }
    insert(placed, below, buffer);
    return b->offset + b->bytes;
}

static void forget_dead(const struct stk_plan *plan, struct placed *placed, uint32_t op)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < placed->count; i++)
        if (plan->buffers[placed->index[i]].last_op >= op)
            placed->index[kept++] = placed->index[i];
    placed->count = kept;
}

static uint64_t place_by_time(struct stk_plan *plan, struct placed *placed)
{
    uint64_t highest = 0;
    placed->count = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        assert(i == 0 || plan->buffers[i - 1].first_op <= plan->buffers[i].first_op);
        forget_dead(plan, placed, plan->buffers[i].first_op);
        const uint64_t end = fit(plan, placed, i);
        highest = end > highest ? end : highest;
    }
    return highest;
}

/* Bytes and index of a buffer, to be sorted without access to the plan. */
struct sized {
    uint64_t bytes;
    uint32_t buffer;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *x = a;
    const struct sized *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->buffer < y->buffer ? -1 : 1;
}

static int place_by_size(struct stk_plan *plan, struct placed *placed, uint64_t *highest)
{
    struct sized *order = stk_calloc(plan->buffer_count, sizeof(*order));
    if (order == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        order[i] = (struct sized){ .bytes = plan->buffers[i].bytes, .buffer = i };
    qsort(order, plan->buffer_count, sizeof(*order), by_size);
    placed->count = 0;
    *highest = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const uint64_t end = fit(plan, placed, order[i].buffer);
        *highest = end > *highest ? end : *highest;
    }
    stk_free(order);
    return STOKER_OK;
}

static uint64_t place_apart(struct stk_plan *plan)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        plan->buffers[i].offset = end;
        end += plan->buffers[i].bytes;
    }
    return end;
}

static int place(struct stk_plan *plan, struct placed *placed)
{
    uint64_t by_size_bytes;
    plan->activation_bytes = place_by_time(plan, placed);
    if (plan->activation_bytes == plan->live_bytes_max)
        return STOKER_OK; /* no arena can be smaller */
    int rc = place_by_size(plan, placed, &by_size_bytes);
    if (rc != STOKER_OK)
        return rc;
    if (by_size_bytes < plan->activation_bytes)
        plan->activation_bytes = by_size_bytes;
    else
        (void)place_by_time(plan, placed);
    return STOKER_OK;
}

int stk_arena_place(struct stk_plan *plan)
{
    if (plan->options.no_reuse) {
        plan->activation_bytes = place_apart(plan);
        return STOKER_OK;
    }
    struct placed placed = { .index = stk_calloc(plan->buffer_count, sizeof(*placed.index)) };
    if (placed.index == NULL)
        return STOKER_ENOMEM;
    int rc = place(plan, &placed);
    stk_free(placed.index);
    return rc;
}

bool stk_plan_overlaps(const struct stk_plan *plan, uint32_t *a, uint32_t *b)
{
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        for (uint32_t j = i + 1; j < plan->buffer_count; j++) {
            const struct stk_buffer *x = &plan->buffers[i];
            const struct stk_buffer *y = &plan->buffers[j];
            if (lives_meet(x, y) && x->offset < y->offset + y->bytes &&
                y->offset < x->offset + x->bytes) {
                *a = i;
                *b = j;
                return true;
            }
        }
    return false;
}
