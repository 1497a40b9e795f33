/* blocks.c - see blocks.h. */
#include "loader/storage/blocks.h"

#include "loader/base/crc32c/crc32c.h"
#include "loader/base/error.h"
#include "loader/codec/lz4.h"
#include "loader/codec/refuse.h"
#include "loader/codec/zstd.h"

static const struct {
    const char *name;
    const stoker_codec *codec;
    bool (*present)(void);
} kinds[] = { [STOKER_BLOCK_CODEC_NONE] = { "as is", NULL, NULL },
              [STOKER_BLOCK_CODEC_LZ4] = { "lz4", &stk_codec_lz4, stk_lz4_present },
              [STOKER_BLOCK_CODEC_ZSTD] = { "zstd", &stk_codec_zstd, stk_zstd_present } };

const char *stk_block_codec_name(stoker_block_codec codec)
{
    return kinds[codec].name;
}

static const char *wrong_in_block(const stoker_blocks *blocks, uint64_t number)
{
    const stoker_block *block = &blocks->each[number];
    const uint64_t bytes = stk_block_bytes(blocks, number);
    if (block[1].first_byte <= block->first_byte || bytes > STK_BLOCK_BYTES_MAX)
        return "it does not unpack to 1 to 2^30 bytes";
    if (block->stored_bytes < 1 || block->stored_bytes > STK_BLOCK_BYTES_MAX)
        return "it is not 1 to 2^30 bytes long";
    if ((uint64_t)block->codec >= sizeof(kinds) / sizeof(kinds[0]))
        return "its codec is none of stoker_block_codec";
    return block->codec == STOKER_BLOCK_CODEC_NONE && block->stored_bytes != bytes
               ? "it has no codec, but another length unpacked"
               : NULL;
}

int stk_blocks_check(const stoker_file *file, stoker_error *error)
{
    const stoker_blocks *blocks = file->blocks;
    if (blocks == NULL)
        return STOKER_OK;
    if (blocks->count == 0 || blocks->count >= UINT32_MAX || blocks->each == NULL ||
        blocks->each[0].first_byte != 0)
        return stk_refuse_file(error, STOKER_EINVAL, file->path, STOKER_NO_OFFSET,
                               "its table of blocks is empty or does not begin at byte 0");
    for (uint64_t i = 0; i < blocks->count; i++) {
        const stoker_block *block = &blocks->each[i];
        const char *wrong = wrong_in_block(blocks, i);
        if (wrong != NULL)
            return stk_refuse_file(error, STOKER_EINVAL, file->path, block->offset,
                                   "block %llu: %s", (unsigned long long)i, wrong);
        if (block->codec != STOKER_BLOCK_CODEC_NONE && !kinds[block->codec].present())
            return stk_refuse_file(error, STOKER_ENOTSUP, file->path, block->offset,
                                   "block %llu: this library was built without %s",
                                   (unsigned long long)i, kinds[block->codec].name);
    }
    return STOKER_OK;
}

int stk_block_scratch_open(void **scratch)
{
    return stk_codec_zstd.open(NULL, false, scratch);
}

void stk_block_scratch_close(void *scratch)
{
    stk_codec_zstd.close(NULL, scratch);
}

int stk_block_unpack(const stoker_blocks *blocks, uint64_t number, void *scratch,
                     const void *stored, void *to, stoker_error *said)
{
    const stoker_block *block = &blocks->each[number];
    const size_t bytes = (size_t)stk_block_bytes(blocks, number);
    stoker_row row = { .data = to, .bytes_max = bytes };
    const stoker_encoded in = { .bytes = stored, .size = block->stored_bytes };
    const stoker_decoded out = {
        .struct_size = sizeof(out), .rows = &row, .field_count = 1, .sample_count = 1
    };
    const int rc = block->codec == STOKER_BLOCK_CODEC_NONE
                       ? STOKER_OK
                       : kinds[block->codec].codec->decode(NULL, scratch, &in, &out, said);
    if (rc != STOKER_OK || !block->has_sum)
        return rc == STOKER_OK ? rc : STOKER_ECORRUPT;
    const uint32_t sum = stk_crc32c(0, to, bytes);
    return sum == block->sum
               ? STOKER_OK
               : stk_refuse(said, STOKER_ECORRUPT, "the bytes have checksum %08x, not %08x", sum,
                            block->sum);
}
