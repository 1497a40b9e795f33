/* lz4.c - a record of a shard without its checksum. */
#include "bench/ceiling/lz4.h"

#include <string.h>

#if defined(STOKER_HAVE_LZ4)
#include <lz4.h>

static bool unpack_lz4(const stoker_encoded *record, void *row, size_t row_bytes)
{
    return LZ4_decompress_safe((const char *)record->bytes, row, (int)record->size,
                               (int)row_bytes) == (int)row_bytes;
}
#else
static bool unpack_lz4(const stoker_encoded *record, void *row, size_t row_bytes)
{
    (void)record;
    (void)row;
    (void)row_bytes;
    return false;
}
#endif

bool bench_unpack(const stoker_encoded *record, void *row, size_t row_bytes)
{
    if (record->size != row_bytes)
        return unpack_lz4(record, row, row_bytes);
    memcpy(row, record->bytes, row_bytes);
    return true;
}
