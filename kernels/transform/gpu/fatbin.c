/* fatbin.c - the transform kernels that nvcc compiled, as bytes in the library. */
#include "kernels/fatbin.h"
#include "kernels/transform/gpu/launch.h"

#ifdef STK_KERNELS_FATBIN
STK_EMBED_FATBIN(stk_kernels_fatbin, STK_KERNELS_FATBIN)
#else
STK_NO_FATBIN(stk_kernels_fatbin)
#endif
STK_DESCRIBE_FATBIN(stk_kernels_targets)
