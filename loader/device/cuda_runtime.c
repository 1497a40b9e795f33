/* cuda_runtime.c - see cuda_runtime.h. */
#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda_runtime.h"

#include <stdio.h>

#include "loader/base/library.h"

/* Headers and library must be of one major version: what lies in a struct may differ else. */
#define SONAME_FORMAT "libcudart.so.%d"
enum { MAJOR = CUDART_VERSION / 1000 };

int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, char why[STK_DEVICE_WHY_BYTES])
{
#define FUNCTION(name) STK_FUNCTION(struct stk_cuda_runtime, name)
    static const struct stk_function functions[] = { STK_CUDA_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    char soname[32];
    (void)snprintf(soname, sizeof(soname), SONAME_FORMAT, (int)MAJOR);
    const char *reason = NULL;
    void *library = stk_library_open("STOKER_CUDART", soname, &reason);
    if (library == NULL || !stk_library_fill(library, functions, count, runtime, &reason)) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", reason);
        return STOKER_EDEVICE;
    }
    return 0;
}
#else
typedef int stk_cuda_runtime_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
