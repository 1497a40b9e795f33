/* backend.c - find a back end by name. */
#include "trainer/backend/backend.h"
#include <string.h>

const struct stk_backend_ops *stk_backend_find(const char *name)
{
    static const struct stk_backend_ops *const all[] = { &stk_backend_ref, &stk_backend_cpu,
                                                         &stk_backend_cuda };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(name, all[i]->name) == 0)
            return all[i];
    return NULL;
}
