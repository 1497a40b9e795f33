/* cache.h - what one back end has learned of engines, by graph or product and workspace limit: the
 * engine that runs, and those that failed when they ran.
 *
 * Layers of the same shape are tried or timed once, and a plan that is made again gets the same
 * engines, so that it needs the workspace that was reported for it. */
#ifndef STK_TRAINER_BACKEND_CUDA_ENGINE_CACHE_H
#define STK_TRAINER_BACKEND_CUDA_ENGINE_CACHE_H

#include <stddef.h>

#include "trainer/backend/cuda/engine/choice.h"

enum {
    STK_ENGINE_KEY_BYTES = 192,
    STK_ENGINE_CACHE_ENTRIES_MAX = 4096,
    STK_ENGINE_LINES_BYTES = 16384
};

/* What a user is told of the engines. */
struct stk_engine_report {
    uint64_t graphs; /* graphs and products of which an engine was replaced, or which none runs */
    /* Of the first of them: its key, the engine that failed and why, and the one that runs
     * instead. */
    char first[STK_ENGINE_KEY_BYTES + sizeof(((stoker_error *)NULL)->message)];
    /* A line for each key that has an engine, with the time of one run if it was timed. Lines that
     * do not fit are left out. */
    char lines[STK_ENGINE_LINES_BYTES];
};

struct stk_engine_cache;

/* An empty cache. STOKER_ENOMEM. */
int stk_engine_cache_create(struct stk_engine_cache **out, stoker_error *error);
void stk_engine_cache_destroy(struct stk_engine_cache **cache); /* NULL-safe */

uint32_t stk_engine_cache_entries(const struct stk_engine_cache *cache);

/* Return true if an engine is known to run; only then *out is written. */
bool stk_engine_cache_find(const struct stk_engine_cache *cache, const char *key,
                           struct stk_engine_choice *out);
/* The engines that failed, as stk_engine_failures has them. */
uint64_t stk_engine_cache_failed(const struct stk_engine_cache *cache, const char *key);

/* Add what was learned of a key that has no engine yet, of fewer than STK_ENGINE_KEY_BYTES
 * characters. choice: the engine that runs; NULL = none does. `failures` includes those that were
 * known. A full cache only counts. */
void stk_engine_cache_add(struct stk_engine_cache *cache, const char *key,
                          const struct stk_engine_choice *choice,
                          const struct stk_engine_failures *failures);

/* Valid as long as the cache. */
const struct stk_engine_report *stk_engine_cache_report(const struct stk_engine_cache *cache);

#endif
