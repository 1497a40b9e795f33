/* choose.h - local files or URLs: the storage of the names in a spec.
 *
 *   names in the spec        no storage given    a storage of URLs    the caller's own
 *   one of them is a URL     the default one     it                   it
 *   none is                  local files         local files          it
 */
#ifndef STK_STORAGE_CHOOSE_H
#define STK_STORAGE_CHOOSE_H

#include "loader/storage/storage.h"

/* Returns NULL if memory ran out. */
stoker_storage *stk_storage_for(stoker_storage *storage, const char *names);

#endif
