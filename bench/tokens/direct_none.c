/* direct_none.c - in the place of direct.c in a build without io_uring. */
#include <stoker/error.h>

#include "bench/tokens/direct.h"

int tokens_direct_read(const char *path, uint64_t *bytes)
{
    (void)path;
    *bytes = 0;
    return STOKER_ENOTSUP;
}
