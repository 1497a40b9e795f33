/* cache.c - see cache.h. Searched from front to back, which takes no time beside a benchmark. */
#include "trainer/backend/cuda/engine/cache.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"

struct entry {
    char key[STK_ENGINE_KEY_BYTES];
    struct stk_engine_choice choice;
};

struct stk_engine_cache {
    uint32_t entries;
    struct entry entry[STK_ENGINE_CACHE_ENTRIES_MAX];
};

int stk_engine_cache_create(struct stk_engine_cache **out, stoker_error *error)
{
    struct stk_engine_cache *cache = stk_calloc(1, sizeof(*cache));
    if (cache == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                             &(struct stk_place)STK_NOWHERE, "results of benchmarks");
    *out = cache;
    return STOKER_OK;
}

void stk_engine_cache_destroy(struct stk_engine_cache **cache)
{
    stk_free(*cache);
    *cache = NULL;
}

uint32_t stk_engine_cache_entries(const struct stk_engine_cache *cache)
{
    return cache->entries;
}

bool stk_engine_cache_find(const struct stk_engine_cache *cache, const char *key,
                           struct stk_engine_choice *out)
{
    for (uint32_t i = 0; i < cache->entries; i++)
        if (strcmp(cache->entry[i].key, key) == 0) {
            *out = cache->entry[i].choice;
            return true;
        }
    return false;
}

void stk_engine_cache_add(struct stk_engine_cache *cache, const char *key,
                          const struct stk_engine_choice *choice)
{
    const size_t length = strlen(key);
    assert(length < STK_ENGINE_KEY_BYTES);
    if (cache->entries == STK_ENGINE_CACHE_ENTRIES_MAX)
        return;
    struct entry *const entry = &cache->entry[cache->entries++];
    memcpy(entry->key, key, length + 1);
    entry->choice = *choice;
}
