/* cuda_absent.c - the `cuda` back end of a build without it: create says so. */
#include "loader/base/error.h"
#include "trainer/backend/backend.h"

static int absent_create(struct stk_backend **out, const struct stk_backend_options *options,
                         stoker_error *error)
{
    (void)out;
    (void)options;
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                         "back end cuda: built without the headers of CUDA, cuDNN and cuBLASLt");
}

const struct stk_backend_ops stk_backend_cuda = { .name = "cuda", .create = absent_create };
