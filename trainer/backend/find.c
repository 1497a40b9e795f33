/* find.c - the back ends by name. */
#include "trainer/backend/backend.h"
#include <string.h>

const struct stk_backend_ops *stk_backend_find(const char *name)
{
    if (strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0)
        return &stk_backend_cpu;
    return strcmp(name, "ref") == 0 ? &stk_backend_ref : NULL;
}
