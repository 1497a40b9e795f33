/* avx512.c - the converters for AVX-512 with F, BW and VL. */
#include "kernels/convert/lanes_avx512.h"
#include "kernels/convert/split_ssse3.h"
#define STK_SPLIT_BYTES 1
#include "kernels/convert/body.h"

stk_convert_rows_fn *stk_convert_choose_avx512(const struct stk_convert_plan *plan)
{
    return choose_rows(plan);
}
