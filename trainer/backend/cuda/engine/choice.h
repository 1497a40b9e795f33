/* choice.h - which of several engines that do the same is taken.
 *
 *   engines, best guess first ──▶ allowed by its notes? ──▶ builds? ──▶ fits? ─┬─▶ the first
 *                                  deterministic, full      refused            │
 *                                  float32                  here: the next     └─▶ benchmark: the
 *                                                                                  fastest of k
 *
 * A pure function of what the source answers: it knows no library and has no clock. */
#ifndef STK_TRAINER_BACKEND_CUDA_ENGINE_CHOICE_H
#define STK_TRAINER_BACKEND_CUDA_ENGINE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

/* What is known of an engine before it is made ready. */
struct stk_engine_notes {
    int64_t engine;           /* the library's number of it; -1 = unknown */
    bool nondeterministic;    /* two runs may differ in bits */
    bool tensor_cores;        /* float32 inputs: rounded to TF32 */
    bool reduced;             /* inputs rounded, or sums kept, in less than the types say */
    bool transformed;         /* Winograd or FFT: rounds otherwise than a plain sum */
    bool compiled_when_built; /* half a second and more to make ready */
};

enum { STK_BENCHMARK_MAX = 16 };
#define STK_ENGINE_WORKSPACE_BYTES (UINT64_C(128) << 20)

struct stk_engine_rules {
    uint64_t workspace_bytes_max; /* default STK_ENGINE_WORKSPACE_BYTES */
    bool deterministic;           /* only engines whose runs agree in every bit */
    bool full_float32;            /* float32 operands: neither TF32, nor reduced, nor transformed */
    uint32_t benchmark; /* time so many and take the fastest, 0..STK_BENCHMARK_MAX; 0 = take
                                     the first. Of those compiled when built no more than 3 */
};

/* Where engines come from. Functions return 0 or an error; STOKER_ENOTSUP = this engine cannot, ask
 * the next. */
struct stk_engine_source {
    void *context;
    uint32_t count;
    void (*notes)(void *context, uint32_t index, struct stk_engine_notes *out);
    /* Make one ready, and tell what it needs. What was built before it may be let go. */
    int (*build)(void *context, uint32_t index, uint64_t *workspace_bytes, stoker_error *error);
    /* Run the one that was built last; seconds of one run. NULL if benchmark is 0. */
    int (*time)(void *context, double *seconds, stoker_error *error);
};

struct stk_engine_choice {
    uint32_t index;
    int64_t engine;
    uint64_t workspace_bytes;
    double seconds; /* of one run; 0 = not timed */
    uint32_t timed; /* engines that were timed */
};

/* Whether rules and notes go together; `float32`: the operands are. */
bool stk_engine_allowed(const struct stk_engine_rules *rules, const struct stk_engine_notes *notes,
                        bool float32);

/* Choose. Written on success; the engine chosen is built last only if benchmark is 0. STOKER_ENOTSUP:
 * none is allowed, builds and fits; the message counts why. Other errors of build and time are
 * returned as they are. Of two equally fast ones the earlier is taken. */
int stk_engine_choose(struct stk_engine_choice *out, const struct stk_engine_source *source,
                      const struct stk_engine_rules *rules, bool float32, stoker_error *error);

#endif
