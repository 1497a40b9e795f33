/* create.h - makes a loader, of new memory or with the cache of one before it. */
#ifndef STK_API_CREATE_H
#define STK_API_CREATE_H

#include <stoker/loader.h>

#include "loader/api/choose/cache_choice.h"

/* stoker_loader_create(), which takes kept->cache over, leaving it empty, if it has the rows that
 * it would cache. After a failure it may be freed. */
int stk_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                      const stoker_loader_options *given, struct stk_kept_cache *kept,
                      stoker_error *wanted);

#endif
