/* rounding.h - values to and from a 16-bit storage type T. */
#ifndef STK_TRAINER_BACKEND_REF_ROUNDING_H
#define STK_TRAINER_BACKEND_REF_ROUNDING_H

#include <stdint.h>
#include <stoker/tensor.h>

/* Convert `count` values. `to` and `from` do not overlap. */
void stk_narrow(void *to, const float *from, uint64_t count, stoker_dtype storage);
void stk_widen(float *to, const void *from, uint64_t count, stoker_dtype storage);

/* The value that is read back after `value` was stored. */
float stk_rounded(float value, stoker_dtype storage);

#endif
