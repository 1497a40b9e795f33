/* library.c - see library.h. */
#include "loader/base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "loader/base/environment.h"

void *stk_library_open(const char *variable, const char *soname, const char **why)
{
    *why = stk_environment_refuses_code();
    if (*why != NULL)
        return NULL;
    const char *named = variable == NULL ? NULL : stk_environment(variable);
    void *library = dlopen(named != NULL ? named : soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        *why = dlerror();
    return library;
}

bool stk_library_fill(void *library, const struct stk_function *functions, size_t count,
                      void *table, const char **why)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, functions[i].name);
        if (address == NULL) {
            *why = dlerror();
            return false;
        }
        /* ISO C has no cast from an object's address to a function's; POSIX gives both the same
         * size. */
        memcpy((char *)table + functions[i].at, &address, sizeof(address));
    }
    return true;
}
