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

static int run_plan(void *context, stoker_error *error)
{
    const struct candidates *const c = context;
    return c->how->run(c->how->context, c->plan, error);
}

/* What a choice depends on within one back end. */
static void name_key(char key[STK_ENGINE_KEY_BYTES], const struct stk_cudnn_choosing *how)
{
    (void)snprintf(key, STK_ENGINE_KEY_BYTES, "%s within %" PRIu64, how->graph,
                   how->rules.workspace_bytes_max);
}

static int choose(struct candidates *c, struct stk_engine_choice *choice,
                  struct stk_engine_failures *failures, stoker_error *error)
{
    const struct stk_cudnn_choosing *const how = c->how;
    const struct stk_engine_source source = { .context = c,
                                              .count = stk_cudnn_graph_candidates(c->graph),
                                              .notes = tell_notes,
                                              .build = build,
                                              .run = how->run == NULL ? NULL : run_plan,
                                              .time = time_plan,
                                              .failures = failures };
    int rc = stk_engine_choose(choice, &source, &how->rules, how->float32, error);
    if (rc == STOKER_OK && how->rules.benchmark > 0)
        rc = build(c, choice->index, &choice->workspace_bytes,
                   error); /* others were built after it */
    return rc;
}

/* Choose, and keep what was learned. */
static int learn(struct candidates *c, const char *key, struct stk_engine_choice *choice,
                 stoker_error *error)
{
    const struct stk_cudnn_choosing *const how = c->how;
    struct stk_engine_failures failures = { .engines = 0 };
    const bool runs = how->run != NULL || how->rules.benchmark > 0;
    if (how->cache != NULL)
        failures.engines = stk_engine_cache_failed(how->cache, key);
    const int rc = choose(c, choice, &failures, error);
    if (runs && how->cache != NULL && (rc == STOKER_OK || rc == STOKER_ENOTSUP))
        stk_engine_cache_add(how->cache, key, rc == STOKER_OK ? choice : NULL, &failures);
    if (how->failures != NULL && how->failures->first.code == STOKER_OK)
        how->failures->first = failures.first;
    return rc;
}

int stk_cudnn_choose(struct stk_cudnn_plan **out, struct stk_engine_choice *choice,
                     struct stk_cudnn_graph *graph, const struct stk_cudnn_choosing *how,
                     stoker_error *error)
{
    assert(how->rules.benchmark == 0 || how->time != NULL);
    struct candidates c = { .graph = graph, .how = how };
    struct stk_engine_choice found = { .engine = -1 };
    char key[STK_ENGINE_KEY_BYTES] = "";
    int rc;
    if (how->cache != NULL)
        name_key(key, how);
    if (how->cache != NULL && stk_engine_cache_find(how->cache, key, &found))
        rc = build(&c, found.index, &found.workspace_bytes, error);
    else
        rc = learn(&c, key, &found, error);
    if (rc != STOKER_OK) {
        stk_cudnn_plan_destroy(&c.plan);
        return rc;
    }
    *choice = found;
    *out = c.plan;
    return STOKER_OK;
}
