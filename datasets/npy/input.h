/* input.h - the bytes of an NPY file, which may be a member of an archive. */
#ifndef STK_DATASETS_NPY_INPUT_H
#define STK_DATASETS_NPY_INPUT_H

#include "datasets/npy/header.h"
#include "datasets/source.h"

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
