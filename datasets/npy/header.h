/* header.h - what the header of an NPY file says, checked. */
#ifndef STK_DATASETS_NPY_HEADER_H
#define STK_DATASETS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

/* As much of a file's beginning as is ever needed: NumPy's own limit on a header. */
enum { STK_NPY_BEGIN_BYTES = 12 + 10000 };

struct stk_npy_header {
    char kind;              /* 'b' truth values, 'i' signed, 'u' unsigned, 'f' floating point */
    uint32_t element_bytes; /* 1, 2, 4, 8 */
    bool big_endian;        /* false for single bytes */
    uint32_t rank;          /* axes, the samples' own included, 1..STOKER_RANK_MAX */
    uint64_t lengths[STOKER_RANK_MAX]; /* of each axis, >= 1 */
    uint32_t header_bytes;             /* where the elements begin */
    uint32_t row_bytes;                /* one sample, 1 byte..1 GiB */
};

bool stk_npy_magic(const uint8_t *bytes, size_t size);

/* Parse the first `size` bytes of a file which is file_bytes long: the header, and the length it
 * promises. size is that of the file, or STK_NPY_BEGIN_BYTES. path is for messages.
 * Errors: STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EOVERSIZE, STOKER_EFORMAT, STOKER_EEMPTY,
 * STOKER_ELIMIT; STOKER_ENOTSUP for elements that are no numbers of ours, and Fortran order. */
int stk_npy_parse(struct stk_npy_header *out, const uint8_t *bytes, size_t size,
                  uint64_t file_bytes, const char *path, stoker_error *error);

#endif
