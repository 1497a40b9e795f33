/* elements.h - converts consecutive elements from one type to another, for fields that are no
 * images.
 *
 *   to an integer type   from every integer type and bool whose values it can all hold: the value
 *                        stays
 *   to a float type      from every type: rounded to nearest, ties to even; to float16 and
 *                        bfloat16 by way of float32
 *   to the same type     copied
 *
 * The result is defined to the bit and the same on every CPU. Elements need no alignment. */
#ifndef STK_KERNELS_CONVERT_ELEMENTS_H
#define STK_KERNELS_CONVERT_ELEMENTS_H

#include <stddef.h>
#include <stoker/tensor.h>

/* Convert `count` elements; in and out must not overlap. */
typedef void stk_elements_fn(const void *in, void *out, size_t count);

/* Returns the function for these types, or NULL if there is no such conversion. Any thread. */
stk_elements_fn *stk_elements_choose(stoker_dtype from, stoker_dtype to);

#endif
