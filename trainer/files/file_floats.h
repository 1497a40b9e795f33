/* file_floats.h - converts numbers of a file to floats: F32 as they are, F16, BF16 and F64
 * converted. */
#ifndef STK_TRAINER_FILE_FLOATS_H
#define STK_TRAINER_FILE_FLOATS_H

#include <stdbool.h>

#include "trainer/files/tensors.h"

bool stk_holds_floats(enum stk_file_dtype dtype);

/* Reads count numbers from any address. A double beyond the range of float becomes infinite. */
void stk_read_floats(float *out, const void *from, enum stk_file_dtype dtype, uint64_t count);

#endif
