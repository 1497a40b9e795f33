/* header.h - parse and check the header of an NPY file. */
#ifndef STK_DATASETS_NPY_HEADER_H
#define STK_DATASETS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/source.h"

/* The longest header that is read: NumPy's own limit. */
enum { STK_NPY_BEGIN_BYTES = 12 + 10000 };

struct stk_npy_header {
    char kind;              /* 'b' truth values, 'i' signed, 'u' unsigned, 'f' floating point */
    uint32_t element_bytes; /* 1, 2, 4, 8 */
    bool big_endian;        /* false for single bytes */
    uint32_t rank;          /* 1..STOKER_RANK_MAX, with the axis of samples; 0 only of a sample */
    uint64_t lengths[STOKER_RANK_MAX]; /* per axis, >= 1 */
    uint32_t header_bytes;             /* where the elements begin */
    uint32_t row_bytes;                /* one sample, 1 byte..1 GiB */
};

bool stk_npy_magic(const uint8_t *bytes, size_t size);

/* Parse the first `size` bytes of a file of file_bytes bytes, and compare its length with the
 * header. size is the smaller of file_bytes and STK_NPY_BEGIN_BYTES. path is for messages. Errors:
 * STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EOVERSIZE, STOKER_EFORMAT, STOKER_EEMPTY, STOKER_ELIMIT;
 * STOKER_ENOTSUP for other element types and for Fortran order. */
int stk_npy_parse(struct stk_npy_header *out, const uint8_t *bytes, size_t size,
                  uint64_t file_bytes, const char *path, stoker_error *error);

/* The same for an array that is one sample: it may have no axes, and no entries along the first
 * one. row_bytes is that of one entry, or of the array if it has no axes. `size` may be less than
 * file_bytes: STOKER_ELIMIT if the header is longer than it. */
int stk_npy_parse_sample(struct stk_npy_header *out, const uint8_t *bytes, size_t size,
                         uint64_t file_bytes, const char *path, stoker_error *error);

/* The bits of the element at `at`; those of a signed integer are extended to 64. */
uint64_t stk_npy_bits(const struct stk_npy_header *header, const uint8_t *at);

/* The element type. */
stoker_dtype stk_npy_dtype(const struct stk_npy_header *header);

/* Where an NPY file lies: in an open file at offset, or in memory. */
struct stk_npy_input {
    const char *name; /* for messages: the path, or ARCHIVE:MEMBER */
    const struct stk_source *source;
    uint64_t offset; /* where it begins in the source */
    uint64_t bytes;  /* length of the NPY file */
    uint8_t *memory; /* NULL = in the source */
};

/* Read `bytes` bytes at `at` of the NPY file. */
int stk_npy_read(const struct stk_npy_input *input, void *to, size_t bytes, uint64_t at,
                 stoker_error *error);

/* Read and check the header. Errors as stk_npy_parse. */
int stk_npy_read_header(struct stk_npy_header *header, const struct stk_npy_input *input,
                        stoker_error *error);

/* Set the error "NAME: offset O: WHAT" and return code. */
int stk_npy_refuse(const struct stk_npy_input *input, int code, uint64_t offset, const char *what,
                   stoker_error *error);

#endif
