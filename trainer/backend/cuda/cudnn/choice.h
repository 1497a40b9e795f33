/* choice.h - from a closed graph to the plan that will run: rules, benchmark, cache. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H

#include "trainer/backend/cuda/cudnn/graph.h"
#include "trainer/backend/cuda/engine/cache.h"

struct stk_cudnn_choosing {
    struct stk_engine_rules rules;
    bool float32; /* the graph's operands are */
    /* With benchmark > 0: searched first, then given the winner; NULL = none. All that share one have
     * the same device and, but for workspace_bytes_max, the same rules. */
    struct stk_engine_cache *cache;
    const char *graph; /* stk_form_text() of it. With a cache: not NULL */
    /* Seconds of one run of a plan on the device; not NULL where benchmark > 0. */
    int (*time)(void *context, struct stk_cudnn_plan *plan, double *seconds, stoker_error *error);
    void *context;
};

/* Choose an engine and make its plan ready. On success *out is the caller's. */
int stk_cudnn_choose(struct stk_cudnn_plan **out, struct stk_engine_choice *choice,
                     struct stk_cudnn_graph *graph, const struct stk_cudnn_choosing *how,
                     stoker_error *error);

#endif
