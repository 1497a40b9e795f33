/* runtime.c - see runtime.h. */
#include "trainer/backend/cuda/device/runtime.h"

#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/library.h"

/* Headers and library must be of one major version: what lies in a struct may differ else. */
enum { MAJOR = CUDART_VERSION / 1000 };

int stk_trainer_cuda_load(struct stk_trainer_cuda *runtime, stoker_error *error)
{
#define FUNCTION(name) STK_FUNCTION(struct stk_trainer_cuda, name)
    static const struct stk_function functions[] = { STK_TRAINER_CUDA_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    char soname[32];
    (void)snprintf(soname, sizeof(soname), "libcudart.so.%d", (int)MAJOR);
    const char *why = NULL;
    void *library = stk_library_open("STOKER_CUDART", soname, &why);
    if (library != NULL && stk_library_fill(library, functions, count, runtime, &why))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                         "back end cuda: %s", why);
}
