/* fatbin.c - the kernels of transforms that nvcc compiled, as bytes in the library. */
#include "kernels/transform/launch.h"

#ifdef STK_KERNELS_FATBIN
#include "kernels/embed.h"

STK_EMBED(stk_fatbin, STK_KERNELS_FATBIN);

const void *stk_kernels_fatbin(size_t *bytes)
{
    *bytes = (size_t)(stk_fatbin_end - stk_fatbin_begin);
    return stk_fatbin_begin;
}
#else
const void *stk_kernels_fatbin(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}
#endif
