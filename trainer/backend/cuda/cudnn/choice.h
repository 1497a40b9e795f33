/* choice.h - from a closed graph to the plan that will run: rules, benchmark, cache. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H

#include "trainer/backend/common/engine_cache.h"
#include "trainer/backend/cuda/cudnn/graph.h"

struct stk_cudnn_choosing {
    struct stk_engine_rules rules;
    bool float32;                   /* the graph's operands are */
    struct stk_engine_cache *cache; /* asked first and told the winner, where benchmark > 0; NULL =
                                       none */
    const char *graph;              /* stk_form_text() of it. With a cache: not NULL */
    const char *device;             /* its name and architecture, "NVIDIA H200 sm_90". The same */
    /* Seconds of one run of a plan on the device; not NULL where benchmark > 0. */
    int (*time)(void *context, struct stk_cudnn_plan *plan, double *seconds, stoker_error *error);
    void *context;
};

/* Choose an engine and make its plan ready. On success *out is the caller's. What a cache says is
 * believed only if the engine is still there, allowed, builds and fits; else it is timed again. */
int stk_cudnn_choose(struct stk_cudnn_plan **out, struct stk_engine_choice *choice,
                     struct stk_cudnn_graph *graph, const struct stk_cudnn_choosing *how,
                     stoker_error *error);

#endif
