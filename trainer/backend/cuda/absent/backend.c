/* backend.c - the `cuda` back end of a build without it: create fails with the reason. */
#include <stdio.h>

#include "loader/base/error.h"
#include "trainer/backend/backend.h"

#include "trainer/backend/cuda/device/list.h"
#include "trainer/backend/cuda/ranks/words.h"

#define WHY "built without the headers of CUDA, cuDNN and cuBLASLt"

static int absent_create(struct stk_backend **out, const struct stk_backend_options *options,
                         stoker_error *error)
{
    (void)out;
    (void)options;
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                         "back end cuda: " WHY);
}

/* The capabilities of the real one, so that the reason is not a missing capability. */
const struct stk_backend_ops stk_backend_cuda = {
    .name = "cuda",
    .storages =
        1U << STOKER_DTYPE_FLOAT32 | 1U << STOKER_DTYPE_FLOAT16 | 1U << STOKER_DTYPE_BFLOAT16,
    .has_engines = true,
    .create = absent_create,
};

size_t stk_cuda_list_devices(char *text, size_t bytes)
{
    const int length = snprintf(text, bytes, "%-8s none: %s\n", "cuda", WHY);
    return (size_t)length < bytes ? (size_t)length : bytes - 1;
}

uint32_t stk_cuda_count_devices(void)
{
    return 0;
}

int stk_cuda_words_join(struct stk_peers **out, const stoker_ranks *ranks, uint32_t device,
                        uint32_t timeout_ms, stoker_error *error)
{
    (void)out;
    (void)ranks;
    (void)device;
    (void)timeout_ms;
    return absent_create(NULL, NULL, error);
}
