/* neon.c - the converters for 64-bit ARM. */
#include "kernels/convert/lanes_neon.h"
#include "kernels/convert/split_neon.h"
#define STK_SPLIT_BYTES 1
#include "kernels/convert/body.h"

stk_convert_rows_fn *stk_convert_choose_neon(const struct stk_convert_plan *plan)
{
    return choose_rows(plan);
}
