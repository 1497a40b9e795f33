/* avx2.c - the converters for AVX2 with FMA and F16C. */
#include "kernels/convert/lanes_avx2.h"
#include "kernels/convert/split_ssse3.h"
#define STK_SPLIT_BYTES 1
#include "kernels/convert/body.h"

stk_convert_rows_fn *stk_convert_choose_avx2(const struct stk_convert_plan *plan)
{
    return choose_rows(plan);
}
