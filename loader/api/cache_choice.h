/* cache_choice.h - which samples the cache keeps, and as what: decoded, as stored, or none, by what fits in the budget. */
#ifndef STK_API_CACHE_CHOICE_H
#define STK_API_CACHE_CHOICE_H

#include <stddef.h>

#include "loader/api/loader.h"

/* Bytes of field 0 in a cache of decoded samples. */
size_t stk_cache_choice_row_bytes(const stoker_loader *loader);

/* Choose a cache, once the fields are planned, and make it: sets pipeline.cache, facts.cache, cache_reason and
 * share_reason. Returns 0 or a stoker_err. */
int stk_cache_choice_make(stoker_loader *loader, stoker_error *error);

/* Bytes of it that this process counts as reserved (base/budget.h). */
uint64_t stk_cache_choice_reserved_bytes(const stoker_loader *loader);

#endif
