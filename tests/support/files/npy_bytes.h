/* npy_bytes.h - NPY files put together by hand, as NumPy pads them. */
#ifndef STK_TEST_NPY_BYTES_H
#define STK_TEST_NPY_BYTES_H

#include "dataset_files.h"

/* Append a file of version 1.0: the header ends at a multiple of 64. */
static inline void stk_put_npy(struct stk_bytes *to, const char *descr, const char *shape,
                               const void *elements, size_t bytes)
{
    char text[200];
    const int used = snprintf(
        text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    const size_t whole = (10 + (size_t)used + 1 + 63) / 64 * 64;
    const uint8_t begin[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(whole - 10), (uint8_t)((whole - 10) >> 8)
    };
    const size_t first = to->size;
    stk_put(to, begin, sizeof(begin));
    stk_put(to, text, (size_t)used);
    while (to->size < first + whole - 1)
        stk_put(to, " ", 1);
    stk_put(to, "\n", 1);
    if (bytes > 0)
        stk_put(to, elements, bytes);
}

#endif
