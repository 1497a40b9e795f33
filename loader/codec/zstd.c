/* zstd.c - see zstd.h. */
#include "loader/codec/zstd.h"

#include <assert.h>

#include "loader/codec/refuse.h"

#ifdef STOKER_HAVE_ZSTD
#include <zstd.h>

#include "loader/base/bytes.h"
#include "loader/base/fault.h"

enum { FRAME_MAGIC_BYTES = 4 };

bool stk_zstd_present(void)
{
    return true;
}

size_t stk_zstd_bound(size_t row_bytes)
{
    const size_t bound = ZSTD_compressBound(row_bytes);
    return ZSTD_isError(bound) ? 0 : bound;
}

size_t stk_zstd_pack(const void *row, size_t row_bytes, int level, void *frame,
                     size_t frame_bytes_max)
{
    assert(level >= 1);
    assert(level <= STK_ZSTD_LEVEL_MAX);
    const size_t bytes = ZSTD_compress(frame, frame_bytes_max, row, row_bytes, level);
    return ZSTD_isError(bytes) ? 0 : bytes;
}

static int open_scratch(const void *self, bool any_size, void **scratch)
{
    (void)self;
    (void)any_size;
    /* libzstd allocates by itself; the tests let that fail too. */
    *scratch = stk_fault_hit(STK_FAULT_MEMORY) ? NULL : ZSTD_createDCtx();
    return *scratch == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    (void)ZSTD_freeDCtx(scratch);
}

/* Accept exactly one frame of today's format: a build of libzstd may also know older formats, whose
 * decoders allocate. */
static const char *wrong_in_frame(const stoker_encoded *in, size_t row_bytes)
{
    if (in->size < FRAME_MAGIC_BYTES || stk_load_le32(in->bytes) != ZSTD_MAGICNUMBER)
        return "not a Zstandard frame";
    if (ZSTD_getFrameContentSize(in->bytes, in->size) != row_bytes)
        return "a frame that does not have the bytes of the row";
    const size_t frame_bytes = ZSTD_findFrameCompressedSize(in->bytes, in->size);
    return ZSTD_isError(frame_bytes) ? "a truncated or damaged frame"
           : frame_bytes != in->size ? "bytes after the frame"
                                     : NULL;
}

static int unpack(void *scratch, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    const char *wrong = wrong_in_frame(in, row_bytes);
    if (wrong != NULL)
        return stk_refuse(error, STOKER_ECORRUPT, "%s (%zu bytes, row of %zu)", wrong, in->size,
                          row_bytes);
    const size_t bytes = ZSTD_decompressDCtx(scratch, row, row_bytes, in->bytes, in->size);
    if (ZSTD_isError(bytes) || bytes != row_bytes)
        return stk_refuse(error, STOKER_ECORRUPT, "a damaged frame of %zu bytes", in->size);
    return STOKER_OK;
}
#else
bool stk_zstd_present(void)
{
    return false;
}

size_t stk_zstd_bound(size_t row_bytes)
{
    (void)row_bytes;
    return 0;
}

size_t stk_zstd_pack(const void *row, size_t row_bytes, int level, void *frame,
                     size_t frame_bytes_max)
{
    (void)row;
    (void)row_bytes;
    (void)level;
    (void)frame;
    (void)frame_bytes_max;
    return 0;
}

static int open_scratch(const void *self, bool any_size, void **scratch)
{
    (void)self;
    (void)any_size;
    *scratch = NULL;
    return STOKER_OK;
}

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    (void)scratch;
}

static int unpack(void *scratch, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    (void)scratch;
    (void)in;
    (void)row;
    (void)row_bytes;
    return stk_refuse(error, STOKER_ENOTSUP, "Zstandard, but this build lacks libzstd");
}
#endif

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    const size_t row_bytes = out->rows[0].bytes_max;
    if (row_bytes / STK_ZSTD_RATIO_MAX > in->size)
        return stk_refuse(error, STOKER_ECORRUPT, "%zu bytes cannot unpack to a row of %zu",
                          in->size, row_bytes);
    return unpack(scratch, in, out->rows[0].data, row_bytes, error);
}

const stoker_codec stk_codec_zstd = { .struct_size = sizeof(stoker_codec),
                                      .name = "zstd",
                                      .open = open_scratch,
                                      .close = close_scratch,
                                      .decode = decode };
