/* cache.c - see cache.h. Searched from front to back, which takes no time beside running an
 * engine. */
#include "trainer/backend/cuda/engine/cache.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

struct entry {
    char key[STK_ENGINE_KEY_BYTES];
    struct stk_engine_choice choice;
    bool runs;       /* choice has an engine */
    uint64_t failed; /* bits of stk_engine_failures */
};

struct stk_engine_cache {
    uint32_t entries;
    struct stk_engine_report report;
    size_t lines_used;
    struct entry entry[STK_ENGINE_CACHE_ENTRIES_MAX];
};

int stk_engine_cache_create(struct stk_engine_cache **out, stoker_error *error)
{
    struct stk_engine_cache *cache = stk_calloc(1, sizeof(*cache));
    if (cache == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "results of benchmarks");
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

static const struct entry *find(const struct stk_engine_cache *cache, const char *key)
{
    for (uint32_t i = 0; i < cache->entries; i++)
        if (strcmp(cache->entry[i].key, key) == 0)
            return &cache->entry[i];
    return NULL;
}

bool stk_engine_cache_find(const struct stk_engine_cache *cache, const char *key,
                           struct stk_engine_choice *out)
{
    const struct entry *const entry = find(cache, key);
    if (entry == NULL || !entry->runs)
        return false;
    *out = entry->choice;
    return true;
}

uint64_t stk_engine_cache_failed(const struct stk_engine_cache *cache, const char *key)
{
    const struct entry *const entry = find(cache, key);
    return entry == NULL ? 0 : entry->failed;
}

/* first.code: an engine failed in this choice, and not only in an earlier one. */
static void count(struct stk_engine_report *report, const char *key,
                  const struct stk_engine_choice *choice,
                  const struct stk_engine_failures *failures)
{
    if (failures->first.code == STOKER_OK || report->graphs++ > 0)
        return;
    if (choice == NULL)
        (void)snprintf(report->first, sizeof(report->first), "%s: %s; no other engine runs", key,
                       failures->first.message);
    else
        (void)snprintf(report->first, sizeof(report->first),
                       "%s: %s; engine %" PRId64 " runs instead", key, failures->first.message,
                       choice->engine);
}

static void write_line(struct stk_engine_cache *cache, const char *key,
                       const struct stk_engine_choice *choice)
{
    char line[STK_ENGINE_KEY_BYTES + 64], time[32] = "";
    if (choice->seconds > 0)
        (void)snprintf(time, sizeof(time), ", %.1f us", choice->seconds * 1e6);
    const int bytes =
        snprintf(line, sizeof(line), "%s: engine %" PRId64 "%s\n", key, choice->engine, time);
    if (cache->lines_used + (size_t)bytes >= STK_ENGINE_LINES_BYTES)
        return;
    memcpy(cache->report.lines + cache->lines_used, line, (size_t)bytes);
    cache->lines_used += (size_t)bytes;
}

void stk_engine_cache_add(struct stk_engine_cache *cache, const char *key,
                          const struct stk_engine_choice *choice,
                          const struct stk_engine_failures *failures)
{
    const size_t length = strlen(key);
    struct entry *entry = (struct entry *)find(cache, key);
    assert(length < STK_ENGINE_KEY_BYTES);
    assert(entry == NULL || !entry->runs);
    count(&cache->report, key, choice, failures);
    if (entry == NULL) {
        if (cache->entries == STK_ENGINE_CACHE_ENTRIES_MAX)
            return;
        entry = &cache->entry[cache->entries++];
        memcpy(entry->key, key, length + 1);
    }
    entry->runs = choice != NULL;
    if (choice != NULL) {
        entry->choice = *choice;
        write_line(cache, key, choice);
    }
    entry->failed = failures->engines;
}

const struct stk_engine_report *stk_engine_cache_report(const struct stk_engine_cache *cache)
{
    return &cache->report;
}
