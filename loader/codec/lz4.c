/* lz4.c - see lz4.h. */
#include "loader/codec/lz4.h"

#include <assert.h>

#include "loader/codec/refuse.h"

#ifdef STOKER_HAVE_LZ4
#include <lz4.h>
#include <lz4hc.h>

bool stk_lz4_present(void)
{
    return true;
}

size_t stk_lz4_bound(size_t row_bytes)
{
    return row_bytes > LZ4_MAX_INPUT_SIZE ? 0 : (size_t)LZ4_compressBound((int)row_bytes);
}

size_t stk_lz4_pack(const void *row, size_t row_bytes, int level, void *block,
                    size_t block_bytes_max)
{
    assert(row_bytes <= LZ4_MAX_INPUT_SIZE);
    assert(level >= 0);
    assert(level <= LZ4HC_CLEVEL_MAX);
    const int room = block_bytes_max > INT32_MAX ? INT32_MAX : (int)block_bytes_max;
    const int bytes = level == 0 ? LZ4_compress_default(row, block, (int)row_bytes, room)
                                 : LZ4_compress_HC(row, block, (int)row_bytes, room, level);
    return bytes < 0 ? 0 : (size_t)bytes;
}

static int unpack(const stoker_encoded *in, void *row, size_t row_bytes, stoker_error *error)
{
    const int bytes =
        LZ4_decompress_safe((const char *)in->bytes, row, (int)in->size, (int)row_bytes);
    if (bytes < 0)
        return stk_refuse(error, STOKER_ECORRUPT, "a damaged block of %zu bytes", in->size);
    if ((size_t)bytes != row_bytes)
        return stk_refuse(error, STOKER_ECORRUPT, "a block of %d bytes for a row of %zu", bytes,
                          row_bytes);
    return STOKER_OK;
}
#else
bool stk_lz4_present(void)
{
    return false;
}

size_t stk_lz4_bound(size_t row_bytes)
{
    (void)row_bytes;
    return 0;
}

size_t stk_lz4_pack(const void *row, size_t row_bytes, int level, void *block,
                    size_t block_bytes_max)
{
    (void)row;
    (void)row_bytes;
    (void)level;
    (void)block;
    (void)block_bytes_max;
    return 0;
}

static int unpack(const stoker_encoded *in, void *row, size_t row_bytes, stoker_error *error)
{
    (void)in;
    (void)row;
    (void)row_bytes;
    return stk_refuse(error, STOKER_ENOTSUP, "LZ4, but this build lacks it");
}
#endif

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    const size_t row_bytes = out->rows[0].bytes_max;
    if (in->size > INT32_MAX || row_bytes > INT32_MAX)
        return stk_refuse(error, STOKER_ELIMIT,
                          "%zu bytes for a row of %zu: LZ4 blocks end at 2^31", in->size,
                          row_bytes);
    if (row_bytes / STK_LZ4_RATIO_MAX > in->size)
        return stk_refuse(error, STOKER_ECORRUPT, "%zu bytes cannot unpack to a row of %zu",
                          in->size, row_bytes);
    return unpack(in, out->rows[0].data, row_bytes, error);
}

const stoker_codec stk_codec_lz4 = { .struct_size = sizeof(stoker_codec),
                                     .name = "lz4",
                                     .decode = decode };
