/* fatbin.c - the kernels that nvcc compiled, as bytes in the library. */
#include "kernels/launch.h"

#ifdef STK_KERNELS_FATBIN
__asm__(".pushsection .rodata\n"
        ".hidden stk_fatbin_begin\n"
        ".hidden stk_fatbin_end\n"
        ".globl stk_fatbin_begin\n"
        ".globl stk_fatbin_end\n"
        ".balign 64\n"
        "stk_fatbin_begin:\n"
        ".incbin \"" STK_KERNELS_FATBIN "\"\n"
        "stk_fatbin_end:\n"
        ".popsection\n");

extern const unsigned char stk_fatbin_begin[], stk_fatbin_end[];

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
