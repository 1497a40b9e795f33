/* cache_choice.h - which samples the cache keeps, and as what: decoded, as stored, or none, by what
 * fits in the budget. */
#ifndef STK_API_CACHE_CHOICE_H
#define STK_API_CACHE_CHOICE_H

#include <stddef.h>

#include "loader/api/loader.h"
#include "loader/cache/cache.h"

/* A cache without a loader, on its way from one to the next; all zero = none. */
struct stk_kept_cache {
    struct stk_cache cache;
    char key[STK_SEGMENT_KEY_BYTES]; /* see stk_cache_choice_name */
};

/* Bytes of field 0 in a cache of decoded samples. */
size_t stk_cache_choice_row_bytes(const stoker_loader *loader);

/* Choose a cache, once the fields are planned, and make it, or take the kept one over if it has the
 * same rows: sets pipeline.cache, facts.cache, cache_reason, share_reason and batches_bytes_max.
 * Returns 0 or a stoker_err. */
int stk_cache_choice_make(stoker_loader *loader, struct stk_kept_cache *kept, stoker_error *error);

/* Write a key: loaders of one data set whose caches of this kind have equal ones have equal bytes
 * at equal places there. */
void stk_cache_choice_name(const stoker_loader *loader, stoker_cache kind,
                           char key[STK_SEGMENT_KEY_BYTES]);

/* Bytes of it that this process counts as reserved (base/memory/budget.h). */
uint64_t stk_cache_choice_reserved_bytes(const stoker_loader *loader);

#endif
