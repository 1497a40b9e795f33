/* widen.h - tokens from the type in which they are stored to a wider integer. */
#ifndef STK_DATASETS_TOKENS_WIDEN_H
#define STK_DATASETS_TOKENS_WIDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stoker/tensor.h>

/* Copy `count` tokens. Returns false if one of them does not fit; the others are written. from may be unaligned. */
typedef bool stk_widen_fn(const void *from, void *to, size_t count);

/* The function from one type to another; NULL = there is none. All go to themselves, to INT64, and those of up to 32 bits
 * to INT32; unsigned ones to their signed type as long as the value fits. */
stk_widen_fn *stk_widen_choose(stoker_dtype from, stoker_dtype to);

#endif
