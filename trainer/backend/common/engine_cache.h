/* engine_cache.h - the winners of earlier benchmarks, in memory and in a file.
 *
 *   stoker engines 1
 *   KEY <tab> ENGINE <tab> INDEX <tab> WORKSPACE BYTES <tab> NANOSECONDS
 *   ...                                                  sorted by key, no key twice
 *   crc32c XXXXXXXX                                      of everything before this line
 *
 * A key says all that a winner depends on (the graph, shapes, type, rules, device, version), so a
 * new driver or library simply misses. A file that breaks any of this is refused whole: a wrong
 * engine would still compute rightly, but damage should be seen. */
#ifndef STK_TRAINER_BACKEND_COMMON_ENGINE_CACHE_H
#define STK_TRAINER_BACKEND_COMMON_ENGINE_CACHE_H

#include "trainer/backend/common/engine_choice.h"
#include <stddef.h>

enum {
    STK_ENGINE_KEY_BYTES = 256, /* the final 0 included */
    STK_ENGINE_CACHE_ENTRIES_MAX = 4096,
    STK_ENGINE_CACHE_FILE_BYTES_MAX = 2 << 20
};

struct stk_engine_cache;

/* An empty cache. STOKER_ENOMEM. */
int stk_engine_cache_create(struct stk_engine_cache **out, stoker_error *error);
void stk_engine_cache_destroy(struct stk_engine_cache **cache); /* NULL-safe */

uint32_t stk_engine_cache_entries(const struct stk_engine_cache *cache);

/* Whether there is an entry; *out is written if there is. */
bool stk_engine_cache_find(const struct stk_engine_cache *cache, const char *key,
                           struct stk_engine_choice *out);
/* Keep a winner, in the place of one of the same key. key: 1..255 printable ASCII characters, else
 * STOKER_EINVAL. STOKER_ELIMIT: the cache is full. */
int stk_engine_cache_keep(struct stk_engine_cache *cache, const char *key,
                          const struct stk_engine_choice *choice, stoker_error *error);

/* Take what a file holds into an empty cache. On failure it stays empty: STOKER_ENOENT (there is none
 * yet), STOKER_EMAGIC, EFORMAT, ECORRUPT (checksum), ELIMIT, ... */
int stk_engine_cache_read(struct stk_engine_cache *cache, const char *path, stoker_error *error);
/* The same from memory; path is for messages. */
int stk_engine_cache_parse(struct stk_engine_cache *cache, const char *text, size_t bytes,
                           const char *path, stoker_error *error);
/* Write all entries aside, then rename over path: at any moment it is the old file or the new. */
int stk_engine_cache_write(const struct stk_engine_cache *cache, const char *path,
                           stoker_error *error);

#endif
