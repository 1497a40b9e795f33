/* choice.h - choose one of several engines that compute the same.
 *
 *   engines, best guess first ──▶ allowed by its notes? ──▶ builds? ──▶ fits? ──▶ runs? ─┬─▶ the first
 *                                  deterministic, full      refused               no:    │
 *                                  float32                  here: the next        next   └─▶ benchmark: the fastest of k
 *
 * A pure function of what the source returns: it uses no library and no clock. */
#ifndef STK_TRAINER_BACKEND_CUDA_ENGINE_CHOICE_H
#define STK_TRAINER_BACKEND_CUDA_ENGINE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

/* What is known of an engine before it is built. */
struct stk_engine_notes {
    int64_t engine;           /* number in its library; -1 = unknown */
    bool nondeterministic;    /* two runs may differ in their bits */
    bool tensor_cores;        /* rounds float32 inputs to TF32 */
    bool reduced;             /* rounds inputs or sums to less than their types */
    bool transformed;         /* Winograd or FFT: rounds differently from a plain sum */
    bool compiled_when_built; /* building takes half a second or more */
};

enum { STK_BENCHMARK_MAX = 16, STK_ENGINES_MAX = 64 };
#define STK_ENGINE_WORKSPACE_BYTES (UINT64_C(128) << 20)

struct stk_engine_rules {
    uint64_t workspace_bytes_max; /* default STK_ENGINE_WORKSPACE_BYTES */
    bool deterministic;           /* only engines that give the same bits in each run */
    bool full_float32;            /* float32 operands: neither TF32, nor reduced, nor transformed */
    /* Number of engines to time, of which the fastest is taken, 0..STK_BENCHMARK_MAX; 0 = take the
     * first. At most 3 that are compiled when built. */
    uint32_t benchmark;
};

/* Engines that were allowed, and did not build or run. All zero = none. */
struct stk_engine_failures {
    uint64_t engines;   /* bit i: the engine with index i; it is left out from then on */
    stoker_error first; /* what the engine that failed first reported; code 0 = none */
};

/* A list of engines, best guess first. Functions return 0 or an error; STOKER_ENOTSUP, and EDEVICE
 * of build: try the next engine. */
struct stk_engine_source {
    void *context;
    uint32_t count; /* 0..STK_ENGINES_MAX */
    void (*notes)(void *context, uint32_t index, struct stk_engine_notes *out);
    /* Build an engine and return its workspace. The one built before may be released. */
    int (*build)(void *context, uint32_t index, uint64_t *workspace_bytes, stoker_error *error);
    /* Run the engine built last once, to learn that it runs. NULL: nothing runs. Not called if
     * benchmark is above 0. */
    int (*run)(void *context, stoker_error *error);
    /* Time one run of the engine built last. NULL if benchmark is 0. */
    int (*time)(void *context, double *seconds, stoker_error *error);
    /* Read and added to; NULL if there is neither run nor time. */
    struct stk_engine_failures *failures;
};

struct stk_engine_choice {
    uint32_t index;
    int64_t engine;
    uint64_t workspace_bytes;
    double seconds; /* time of one run; 0 = not timed */
    uint32_t timed; /* number of engines timed */
};

/* True if the rules allow the engine for operands in float32, or of another type. */
bool stk_engine_allowed(const struct stk_engine_rules *rules, const struct stk_engine_notes *notes,
                        bool float32);

/* Choose an engine; of two equally fast ones the earlier. *out is written on success. The engine
 * chosen is the one built last only if benchmark is 0. STOKER_ENOTSUP: no engine is allowed,
 * builds, fits and runs; the message counts the reasons. Other errors of run, time and build are
 * passed on. */
int stk_engine_choose(struct stk_engine_choice *out, const struct stk_engine_source *source,
                      const struct stk_engine_rules *rules, bool float32, stoker_error *error);

/* The result of choosing among several lists: rc, or, if that is STOKER_ENOTSUP and an engine
 * failed, STOKER_EDEVICE with the first failure. */
int stk_engine_result(int rc, const struct stk_engine_failures *failures, stoker_error *error);

#endif
