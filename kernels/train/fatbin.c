/* fatbin.c - the kernels of a training step that nvcc compiled, as bytes in the library. */
#include "kernels/train/train.h"

#ifdef STK_TRAIN_FATBIN
#include "kernels/embed.h"

STK_EMBED(stk_train_fatbin_bytes, STK_TRAIN_FATBIN);

const void *stk_train_fatbin(size_t *bytes)
{
    *bytes = (size_t)(stk_train_fatbin_bytes_end - stk_train_fatbin_bytes_begin);
    return stk_train_fatbin_bytes_begin;
}
#else
const void *stk_train_fatbin(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}
#endif
