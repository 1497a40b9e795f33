/* pipeline_plan.c - see pipeline_plan.h. */
#include "loader/pipeline/plan/pipeline_plan.h"

#include <stdio.h>

bool stk_pipeline_keeps_resized(const struct stk_pipeline_facts *facts)
{
    return facts->has_codec && facts->transforms && facts->resizes_exactly;
}

static enum stk_cached cached_of(const struct stk_pipeline_facts *facts)
{
    switch (facts->cache) {
    case STOKER_CACHE_ENCODED:
        return facts->pieces ? STK_CACHED_PIECES : STK_CACHED_ENCODED;
    case STOKER_CACHE_DECODED:
        return stk_pipeline_keeps_resized(facts) ? STK_CACHED_RESIZED : STK_CACHED_DECODED;
    case STOKER_CACHE_DEVICE:
        return STK_CACHED_ON_GPU;
    case STOKER_CACHE_NONE:
    case STOKER_CACHE_AUTO:
        break;
    }
    return STK_CACHED_NOTHING;
}

static enum stk_finish finish_of(const struct stk_pipeline_facts *facts)
{
    if (facts->transforms)
        return STK_FINISH_TRANSFORM;
    return facts->copies ? STK_FINISH_COPY : STK_FINISH_CONVERT;
}

enum stk_route stk_part_route(const struct stk_part_facts *part)
{
    if (part->source == STK_SOURCE_MEMORY && !part->has_codec)
        return STK_ROUTE_GATHER;
    return part->bytes_are_row && part->as_stored ? STK_ROUTE_READ_IN_PLACE : STK_ROUTE_READ_DECODE;
}

/* Not with a cache of samples, which fills one place, or one of its blocks, at a time. */
static bool has_runs(const struct stk_pipeline_facts *facts)
{
    const enum stk_cached cached = cached_of(facts);
    return facts->in_order && facts->one_part &&
           (cached == STK_CACHED_NOTHING || cached == STK_CACHED_PIECES);
}

struct stk_pipeline_plan stk_pipeline_plan_make(const struct stk_pipeline_facts *facts)
{
    return (struct stk_pipeline_plan){
        .route = facts->route,
        .source = facts->source,
        .finish = finish_of(facts),
        .cached = cached_of(facts),
        .reader = facts->reader,
        .decodes = facts->has_codec,
        .has_files = facts->has_files,
        .any_size = facts->any_size,
        .crops = facts->crops && cached_of(facts) != STK_CACHED_DECODED,
        .threads = facts->threads,
        .runs = has_runs(facts),
        .runs_decode =
            has_runs(facts) && facts->decodes_runs && facts->copies && !facts->transforms,
    };
}

void stk_pipeline_plan_print(const struct stk_pipeline_plan *plan, char *text, size_t text_bytes)
{
    static const char *const routes[] = { "gather", "read_in_place", "read_decode" };
    static const char *const sources[] = { "in memory", "read", "made from ids" };
    static const char *const finishes[] = { "copied", "converted", "transformed" };
    static const char *const cached[] = { "",
                                          "; cache: samples as stored",
                                          "; cache: decoded rows",
                                          "; cache: images after resize",
                                          "; cache: pieces of files",
                                          "; cache: in GPU memory" };
    (void)snprintf(text, text_bytes, "%s: %s%s, %s into the batch%s", routes[plan->route],
                   sources[plan->source], plan->decodes ? ", decoded" : "", finishes[plan->finish],
                   cached[plan->cached]);
}
