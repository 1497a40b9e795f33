/* tensor.c - element types: one table of names and sizes. */
#include <stoker/tensor.h>
#include <string.h>

static const struct dtype_row {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [STOKER_DTYPE_NONE] = { "none", 0 },       [STOKER_DTYPE_UINT8] = { "uint8", 1 },
    [STOKER_DTYPE_INT8] = { "int8", 1 },       [STOKER_DTYPE_INT16] = { "int16", 2 },
    [STOKER_DTYPE_INT32] = { "int32", 4 },     [STOKER_DTYPE_INT64] = { "int64", 8 },
    [STOKER_DTYPE_FLOAT16] = { "float16", 2 }, [STOKER_DTYPE_BFLOAT16] = { "bfloat16", 2 },
    [STOKER_DTYPE_FLOAT32] = { "float32", 4 }, [STOKER_DTYPE_FLOAT64] = { "float64", 8 },
    [STOKER_DTYPE_UINT16] = { "uint16", 2 },   [STOKER_DTYPE_UINT32] = { "uint32", 4 },
    [STOKER_DTYPE_UINT64] = { "uint64", 8 },   [STOKER_DTYPE_BOOL] = { "bool", 1 },
};

enum { DTYPE_COUNT = sizeof(dtypes) / sizeof(dtypes[0]) };

static const struct dtype_row *row_of(stoker_dtype dtype)
{
    return (unsigned)dtype < DTYPE_COUNT ? &dtypes[dtype] : &dtypes[STOKER_DTYPE_NONE];
}

size_t stoker_dtype_bytes(stoker_dtype dtype)
{
    return row_of(dtype)->bytes;
}

const char *stoker_dtype_name(stoker_dtype dtype)
{
    return row_of(dtype)->name;
}

stoker_dtype stoker_dtype_from_name(const char *name)
{
    for (unsigned i = 1; name != NULL && i < DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0)
            return (stoker_dtype)i;
    }
    return STOKER_DTYPE_NONE;
}
