/* cache.h - winners of the benchmarks of one back end, by graph or product and workspace limit.
 *
 * Layers of the same shape are timed once, and a plan that is made again gets the same engines, so that
 * it needs the workspace that was reported for it. */
#ifndef STK_TRAINER_BACKEND_CUDA_ENGINE_CACHE_H
#define STK_TRAINER_BACKEND_CUDA_ENGINE_CACHE_H

#include "trainer/backend/cuda/engine/choice.h"

enum { STK_ENGINE_KEY_BYTES = 192, STK_ENGINE_CACHE_ENTRIES_MAX = 4096 };

struct stk_engine_cache;

/* An empty cache. STOKER_ENOMEM. */
int stk_engine_cache_create(struct stk_engine_cache **out, stoker_error *error);
void stk_engine_cache_destroy(struct stk_engine_cache **cache); /* NULL-safe */

uint32_t stk_engine_cache_entries(const struct stk_engine_cache *cache);

/* Return true if there is an entry; only then *out is written. */
bool stk_engine_cache_find(const struct stk_engine_cache *cache, const char *key,
                           struct stk_engine_choice *out);

/* Add the winner of a key that is not in the cache, of fewer than STK_ENGINE_KEY_BYTES characters. A full cache
 * ignores it. */
void stk_engine_cache_add(struct stk_engine_cache *cache, const char *key,
                          const struct stk_engine_choice *choice);

#endif
