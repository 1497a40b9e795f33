/* cache_key.h - names the cache that loaders of one job on one node may share. */
#ifndef STK_CACHE_KEY_H
#define STK_CACHE_KEY_H

#include "loader/api/loader.h"
#include "loader/cache/cache.h"
#include "loader/dataset/identity.h"

/* Add up what decides the bytes of the samples, and the job. Looks at every sample once. Returns
 * NULL, or why the cache cannot be shared, in words. */
const char *stk_cache_key_of_samples(const stoker_loader *loader, struct stk_identity *out);

/* Write the key of a cache of these samples: equal keys mean equal bytes at equal places. */
void stk_cache_key(const stoker_loader *loader, const struct stk_identity *samples,
                   const struct stk_cache_options *cache, char key[STK_SEGMENT_KEY_BYTES]);

#endif
