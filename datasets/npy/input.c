/* input.c - see input.h. */
#include "datasets/npy/input.h"

#include <assert.h>
#include <string.h>

int stk_npy_refuse(const struct stk_npy_input *input, int code, uint64_t offset, const char *what,
                   stoker_error *error)
{
    return stk_refuse_file(error, code, input->name, offset, "%s", what);
}

int stk_npy_read(const struct stk_npy_input *input, void *to, size_t bytes, uint64_t at,
                 stoker_error *error)
{
    assert(at <= input->bytes);
    assert(bytes <= input->bytes - at);
    if (input->memory == NULL)
        return stk_source_read(input->source, to, bytes, input->offset + at, error);
    memcpy(to, input->memory + at, bytes);
    return STOKER_OK;
}

int stk_npy_read_header(struct stk_npy_header *header, const struct stk_npy_input *input,
                        stoker_error *error)
{
    uint8_t begin[STK_NPY_BEGIN_BYTES];
    const size_t size = input->bytes < sizeof(begin) ? (size_t)input->bytes : sizeof(begin);
    const int rc = stk_npy_read(input, begin, size, 0, error);
    return rc == STOKER_OK ? stk_npy_parse(header, begin, size, input->bytes, input->name, error)
                           : rc;
}
