/* choose.c - see choose.h. */
#include "loader/storage/choose.h"

#include <string.h>

#include "loader/storage/remote/http.h"

/* A URL is at the beginning, or behind one of these characters. */
static bool names_a_url(const char *names)
{
    while (!stk_storage_is_url(names)) {
        names += strcspn(names, "=,;{");
        if (*names == '\0')
            return false;
        names++;
    }
    return true;
}

stoker_storage *stk_storage_for(stoker_storage *storage, const char *names)
{
    if (storage == &stk_storage_local)
        return names_a_url(names) ? stk_remote_default() : storage;
    return storage->urls_only && !names_a_url(names) ? &stk_storage_local : storage;
}
