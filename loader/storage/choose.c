/* choose.c - see choose.h. */
#include "loader/storage/choose.h"

#include <string.h>

#include "loader/storage/remote/http.h"

/* A URL may begin the names, or stand behind one of these characters. */
static bool names_a_url(const char *names)
{
    for (const char *at = names; at != NULL; at = strpbrk(at, "=,;{")) {
        at += at == names && strchr("=,;{", *at) == NULL ? 0 : 1;
        if (stk_storage_is_url(at))
            return true;
    }
    return false;
}

stoker_storage *stk_storage_for(stoker_storage *storage, const char *names)
{
    if (storage == &stk_storage_local)
        return names_a_url(names) ? stk_remote_default() : storage;
    return storage->urls_only && !names_a_url(names) ? &stk_storage_local : storage;
}
