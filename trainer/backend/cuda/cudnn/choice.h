/* choice.h - from a closed graph to the plan that will run: rules, benchmark, cache. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H

#include "trainer/backend/cuda/cudnn/graph.h"
#include "trainer/backend/cuda/engine/cache.h"

struct stk_cudnn_choosing {
    struct stk_engine_rules rules;
    bool float32; /* type of the graph's operands */
    /* With benchmark > 0: searched first, then the winner is added; NULL = none. A cache is for one device
     * and, apart from workspace_bytes_max, one set of rules. */
    struct stk_engine_cache *cache;
    const char *graph; /* its stk_form_text(); required with a cache */
    /* Time one run of a plan on the device; required if benchmark > 0. */
    int (*time)(void *context, struct stk_cudnn_plan *plan, double *seconds, stoker_error *error);
    void *context;
};

/* Choose an engine and build its plan. On success the caller owns *out. */
int stk_cudnn_choose(struct stk_cudnn_plan **out, struct stk_engine_choice *choice,
                     struct stk_cudnn_graph *graph, const struct stk_cudnn_choosing *how,
                     stoker_error *error);

#endif
