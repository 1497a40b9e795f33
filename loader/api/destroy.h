/* destroy.h - ends a loader: its workers, then its memory, once no batch is in use any more. */
#ifndef STK_API_DESTROY_H
#define STK_API_DESTROY_H

#include <stoker/loader.h>

#include "loader/api/choose/cache_choice.h"

/* As stoker_loader_destroy() of a loader that is there, but its cache goes to *kept, which was
 * empty. That stays empty if there is no cache, or a stuck device may still write to it. kept may
 * be NULL. */
void stk_loader_destroy_keeping(stoker_loader **out, struct stk_kept_cache *kept);

/* Free slots, device and the loader itself: its workers have ended, and no batch is in use. A
 * callback for leases. */
void stk_loader_free(void *self);

#endif
