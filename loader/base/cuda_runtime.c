/* cuda_runtime.c - see cuda_runtime.h. */
#ifdef STOKER_HAVE_CUDA
#include "loader/base/cuda_runtime.h"

#include <stdio.h>
#include <stoker/error.h>

#include "loader/base/library.h"

/* Headers and library must be of one major version: another may lay out its structs differently. */
enum { MAJOR = CUDART_VERSION / 1000 };

int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, const char **why)
{
#define FUNCTION(name) STK_FUNCTION(struct stk_cuda_runtime, name)
    static const struct stk_function functions[] = { STK_CUDA_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    char soname[32];
    (void)snprintf(soname, sizeof(soname), "libcudart.so.%d", (int)MAJOR);
    void *library = stk_library_open("STOKER_CUDART", soname, why);
    const bool filled =
        library != NULL && stk_library_fill(library, functions, count, runtime, why);
    return filled ? STOKER_OK : STOKER_EDEVICE;
}
#else
typedef int stk_cuda_runtime_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
