/* choice.h - from a closed graph to the plan that will run: rules, benchmark, cache. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_CHOICE_H

#include "trainer/backend/cuda/cudnn/graph.h"
#include "trainer/backend/cuda/engine/cache.h"

struct stk_cudnn_choosing {
    struct stk_engine_rules rules;
    bool float32; /* type of the graph's operands */
    /* Searched first; what running and timing teach is added. NULL = none. A cache is for one
     * device and, apart from workspace_bytes_max, one set of rules. */
    struct stk_engine_cache *cache;
    const char *graph; /* its stk_form_text(); required with a cache */
    /* Run a plan once on the device, to learn that it runs, or time it; STOKER_ENOTSUP: it does not
     * run, take the next. run: NULL = take a plan that was built; not called if benchmark > 0.
     * time: required if benchmark > 0. */
    int (*run)(void *context, struct stk_cudnn_plan *plan, stoker_error *error);
    int (*time)(void *context, struct stk_cudnn_plan *plan, double *seconds, stoker_error *error);
    void *context;
    /* `first` is set to the first failure of all choices that share it; NULL = not wanted. */
    struct stk_engine_failures *failures;
};

/* Choose an engine and build its plan. On success the caller owns *out. STOKER_ENOTSUP: none is
 * allowed, builds, fits and runs. */
int stk_cudnn_choose(struct stk_cudnn_plan **out, struct stk_engine_choice *choice,
                     struct stk_cudnn_graph *graph, const struct stk_cudnn_choosing *how,
                     stoker_error *error);

#endif
