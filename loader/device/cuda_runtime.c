/* cuda_runtime.c - see cuda_runtime.h. */
#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda_runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(value) #value
#define TEXT(value)    TEXT_OF(value)

/* Headers and library must be of one major version: what lies in a struct may differ else. */
#define SONAME_FORMAT "libcudart.so.%d"
enum { MAJOR = CUDART_VERSION / 1000 };

int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, char why[STK_DEVICE_WHY_BYTES])
{
/* By the symbol's name, which the header may have given a version. */
#define FUNCTION(name) { TEXT(name), offsetof(struct stk_cuda_runtime, name) },
    static const struct {
        const char *name;
        size_t at;
    } functions[] = { STK_CUDA_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    char soname[32];
    (void)snprintf(soname, sizeof(soname), SONAME_FORMAT, (int)MAJOR);
    const char *named = getenv("STOKER_CUDART");
    void *library =
        dlopen(named != NULL && named[0] != '\0' ? named : soname, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", dlerror());
        return STOKER_EDEVICE;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *address = dlsym(library, functions[i].name);
        if (address == NULL) {
            (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", dlerror());
            return STOKER_EDEVICE;
        }
        /* ISO C has no cast from an object's address to a function's; POSIX gives them one size. */
        memcpy((char *)runtime + functions[i].at, &address, sizeof(address));
    }
    return 0;
}
#else
typedef int stk_cuda_runtime_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
