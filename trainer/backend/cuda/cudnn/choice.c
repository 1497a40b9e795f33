/* choice.c - see choice.h. */
#include "trainer/backend/cuda/cudnn/choice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* A graph's candidates as engines to choose from; one plan exists at a time. */
struct candidates {
    struct stk_cudnn_graph *graph;
    struct stk_cudnn_plan *plan;
    const struct stk_cudnn_choosing *how;
};

static void tell_notes(void *context, uint32_t index, struct stk_engine_notes *out)
{
    const struct candidates *const c = context;
    stk_cudnn_graph_candidate(c->graph, index, out);
}

static int build(void *context, uint32_t index, uint64_t *workspace_bytes, stoker_error *error)
{
    struct candidates *const c = context;
    stk_cudnn_plan_destroy(&c->plan);
    const int rc = stk_cudnn_plan_create(&c->plan, c->graph, index, error);
    if (rc == STOKER_OK)
        *workspace_bytes = stk_cudnn_plan_workspace_bytes(c->plan);
    return rc;
}

static int time_plan(void *context, double *seconds, stoker_error *error)
{
    const struct candidates *const c = context;
    return c->how->time(c->how->context, c->plan, seconds, error);
}

static bool key_of(char key[STK_ENGINE_KEY_BYTES], const struct candidates *c, uint64_t version)
{
    const struct stk_engine_rules *const r = &c->how->rules;
    const int length =
        snprintf(key, STK_ENGINE_KEY_BYTES,
                 "cudnn %" PRIu64 "; %s; %s; first %" PRIu32 " within %" PRIu64 "%s%s", version,
                 c->how->device, c->how->graph, r->benchmark, r->workspace_bytes_max,
                 r->deterministic ? ", deterministic" : "", r->full_float32 ? ", float32" : "");
    return length > 0 && length < STK_ENGINE_KEY_BYTES;
}

/* Whether an earlier winner still is one to take; then it is built. */
static bool still_holds(struct candidates *c, struct stk_engine_choice *choice)
{
    if (choice->index >= stk_cudnn_graph_candidates(c->graph))
        return false;
    struct stk_engine_notes notes;
    stk_cudnn_graph_candidate(c->graph, choice->index, &notes);
    if (notes.engine != choice->engine ||
        !stk_engine_allowed(&c->how->rules, &notes, c->how->float32))
        return false;
    return build(c, choice->index, &choice->workspace_bytes, NULL) == STOKER_OK &&
           choice->workspace_bytes <= c->how->rules.workspace_bytes_max;
}

static int choose(struct candidates *c, struct stk_engine_choice *choice, stoker_error *error)
{
    const struct stk_engine_source source = { .context = c,
                                              .count = stk_cudnn_graph_candidates(c->graph),
                                              .notes = tell_notes,
                                              .build = build,
                                              .time = time_plan };
    int rc = stk_engine_choose(choice, &source, &c->how->rules, c->how->float32, error);
    if (rc == STOKER_OK && c->how->rules.benchmark > 0)
        rc = build(c, choice->index, &choice->workspace_bytes, error); /* others came after it */
    return rc;
}

int stk_cudnn_choose(struct stk_cudnn_plan **out, struct stk_engine_choice *choice,
                     struct stk_cudnn_graph *graph, const struct stk_cudnn_choosing *how,
                     stoker_error *error)
{
    assert(how->rules.benchmark == 0 || how->time != NULL);
    struct candidates c = { .graph = graph, .how = how };
    struct stk_engine_choice found = { .engine = -1 };
    char key[STK_ENGINE_KEY_BYTES];
    const bool cached = how->cache != NULL && how->rules.benchmark > 0 &&
                        key_of(key, &c, stk_cudnn_graph_version(graph));
    int rc = STOKER_OK;
    if (!cached || !stk_engine_cache_find(how->cache, key, &found) || !still_holds(&c, &found)) {
        rc = choose(&c, &found, error);
        if (rc == STOKER_OK && cached) /* a full cache is no reason to fail */
            (void)stk_engine_cache_keep(how->cache, key, &found, NULL);
    }
    if (rc != STOKER_OK) {
        stk_cudnn_plan_destroy(&c.plan);
        return rc;
    }
    *choice = found;
    *out = c.plan;
    return STOKER_OK;
}
