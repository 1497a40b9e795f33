/* cuda_runtime.c - see cuda_runtime.h. */
#include "trainer/backend/cuda_runtime.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/error.h"

#define TEXT_OF(value) #value
#define TEXT(value)    TEXT_OF(value)

/* Headers and library must be of one major version: what lies in a struct may differ else. */
enum { MAJOR = CUDART_VERSION / 1000 };

static int refuse(stoker_error *error)
{
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                         "back end cuda: %s", dlerror());
}

int stk_trainer_cuda_load(struct stk_trainer_cuda *runtime, stoker_error *error)
{
/* By the symbol's name, which the header may have given a version. */
#define FUNCTION(name) { TEXT(name), offsetof(struct stk_trainer_cuda, name) },
    static const struct {
        const char *name;
        size_t at;
    } functions[] = { STK_TRAINER_CUDA_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    char soname[32];
    (void)snprintf(soname, sizeof(soname), "libcudart.so.%d", (int)MAJOR);
    const char *named = getenv("STOKER_CUDART");
    void *library =
        dlopen(named != NULL && named[0] != '\0' ? named : soname, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return refuse(error);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *address = dlsym(library, functions[i].name);
        if (address == NULL)
            return refuse(error);
        /* ISO C has no cast from an object's address to a function's; POSIX gives them one size. */
        memcpy((char *)runtime + functions[i].at, &address, sizeof(address));
    }
    return STOKER_OK;
}
