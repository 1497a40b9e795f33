/* recompute.c - see recompute.h.
 *
 * Segments hold about equal bytes of values that backward operations read. Near an equal share, the
 * border is where the fewest bytes cross: between the blocks of a residual network, not inside one.
 */
#include "trainer/plan/recompute.h"

#include <assert.h>
#include <string.h>

#include "loader/base/memory/memory.h"

enum { WINDOW_SHARE = 4 }; /* a border moves by a quarter of a segment at most */

static uint64_t kept_bytes(const struct stk_node *node, bool recompute_batch_norm)
{
    const bool remade = recompute_batch_norm && node->kind == STK_BATCH_NORM;
    return node->kept && !remade ? node->bytes : 0;
}

/* crossing[n]: bytes of values of nodes 1..n that a node after n reads. */
static void count_crossing(const struct stk_graph *graph, uint64_t *crossing)
{
    for (uint32_t n = 1; n < graph->count; n++) {
        crossing[n] += crossing[n - 1] + graph->nodes[n].bytes;
        crossing[graph->nodes[n].last_reader] -= graph->nodes[n].bytes;
    }
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Returns the node to cut after, with about `target` of the kept bytes at or before it. */
static uint32_t find_border(const uint64_t *kept, const uint64_t *crossing, uint32_t from,
                            uint32_t to, uint64_t target, uint64_t window)
{
    uint32_t best = from;
    for (uint32_t n = from; n <= to && kept[n] <= target + window; n++) {
        const bool near = distance(kept[n], target) <= window;
        const bool best_near = distance(kept[best], target) <= window;
        if (near != best_near ? near
            : near && crossing[n] != crossing[best]
                ? crossing[n] < crossing[best]
                : distance(kept[n], target) < distance(kept[best], target))
            best = n;
    }
    return best;
}

/* Fills in first[]; needs two scratch arrays of graph.count. */
static void cut(struct stk_recompute *r, const struct stk_graph *graph, uint32_t wanted,
                bool recompute_batch_norm, uint64_t *kept, uint64_t *crossing)
{
    const uint32_t last = graph->count - 1;
    for (uint32_t n = 1; n <= last; n++)
        kept[n] = kept[n - 1] + kept_bytes(&graph->nodes[n], recompute_batch_norm);
    count_crossing(graph, crossing);

    r->segments = 1;
    r->first[0] = 1;
    for (uint32_t i = 1; i < wanted; i++) {
        const uint32_t from = r->first[r->segments - 1];
        const uint64_t target = kept[last] / wanted * i;
        if (from + 1 >= last)
            break;
        if (kept[from - 1] >= target)
            continue; /* a single value was a whole share */
        const uint32_t border =
            find_border(kept, crossing, from, last - 2, target, kept[last] / wanted / WINDOW_SHARE);
        r->first[r->segments++] = border + 1;
    }
    r->first[r->segments] = graph->count;
}

static void choose_stored(struct stk_recompute *r, const struct stk_graph *graph)
{
    for (uint32_t s = 0; s < r->segments; s++)
        for (uint32_t n = r->first[s]; n < r->first[s + 1]; n++)
            r->stored[n] = graph->nodes[n].last_reader >= r->first[s + 1];
}

/* Two in a row are not both recomputed, so that recomputing takes one operation, not a chain. */
static void choose_remade(struct stk_recompute *r, const struct stk_graph *graph)
{
    for (uint32_t n = 1; n < graph->count; n++)
        r->remade[n] = graph->nodes[n].kind == STK_BATCH_NORM && !r->stored[n] &&
                       !r->remade[graph->nodes[n].in];
}

/* Marks what the backward pass of the segment reads, and what that is computed from. */
static void choose_again(struct stk_recompute *r, const struct stk_graph *graph, uint32_t segment)
{
    const uint32_t first = r->first[segment];
    for (uint32_t n = r->first[segment + 1]; n-- > first;) {
        const struct stk_node *node = &graph->nodes[n];
        const bool places = node->kind == STK_MAX_POOL && node->wants_gradient;
        if (r->stored[n])
            continue;
        if ((node->kept && !r->remade[n]) || places)
            r->again[n] = true;
        if (!r->again[n])
            continue;
        if (node->in >= first && !r->stored[node->in])
            r->again[node->in] = true;
        if (node->other >= first && !r->stored[node->other])
            r->again[node->other] = true;
    }
}

int stk_recompute_choose(struct stk_recompute *recompute, const struct stk_graph *graph,
                         const struct stk_plan_options *options)
{
    struct stk_recompute *r = recompute;
    memset(r, 0, sizeof(*r));
    uint32_t wanted = options->train ? options->checkpoint_segments : 1;
    if (wanted < 1)
        wanted = 1;
    if (wanted > graph->count)
        wanted = graph->count;

    r->first = stk_calloc(wanted + 1, sizeof(*r->first));
    r->stored = stk_calloc(graph->count, 3 * sizeof(*r->stored));
    uint64_t *scratch = stk_calloc(graph->count, 2 * sizeof(*scratch));
    if (r->first == NULL || r->stored == NULL || scratch == NULL) {
        stk_free(scratch);
        stk_recompute_free(r);
        return STOKER_ENOMEM;
    }
    r->remade = r->stored + graph->count;
    r->again = r->remade + graph->count;
    cut(r, graph, wanted, options->recompute_batch_norm, scratch, scratch + graph->count);
    stk_free(scratch);

    choose_stored(r, graph);
    if (options->train && options->recompute_batch_norm)
        choose_remade(r, graph);
    for (uint32_t segment = 0; segment + 1 < r->segments; segment++)
        choose_again(r, graph, segment);
    return STOKER_OK;
}

void stk_recompute_free(struct stk_recompute *recompute)
{
    stk_free(recompute->first);
    stk_free(recompute->stored);
    memset(recompute, 0, sizeof(*recompute));
}
