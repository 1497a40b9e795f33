/* begin.c - see begin.h. */
#include "datasets/shards/begin.h"

#include <stoker/error.h>
#include <string.h>

#include "datasets/shards/layout.h"
#include "loader/base/bytes.h"
#include "loader/base/crc32c.h"

static const uint8_t magic[8] = { 0x89, 'S', 'T', 'K', '\r', '\n', 0x1A, '\n' };

uint32_t stk_shard_version(const uint8_t *from)
{
    return memcmp(from + STK_SHARD_AT_MAGIC, magic, sizeof(magic)) == 0
               ? stk_load_le32(from + STK_SHARD_AT_VERSION)
               : 0;
}

void stk_shard_begin_store(uint8_t *to, uint32_t version)
{
    memset(to, 0, STK_SHARD_BLOCK_BYTES);
    memcpy(to + STK_SHARD_AT_MAGIC, magic, sizeof(magic));
    stk_store_le32(to + STK_SHARD_AT_VERSION, version);
    stk_store_le32(to + STK_SHARD_AT_HEADER_BYTES, STK_SHARD_BLOCK_BYTES);
}

void stk_shard_begin_sum(uint8_t *to)
{
    stk_store_le32(to + STK_SHARD_AT_SUM, stk_crc32c(0, to, STK_SHARD_AT_SUM));
}

static int refused(int code, const char **what, const char *text)
{
    *what = text;
    return code;
}

int stk_shard_begin_check(const uint8_t *from, uint64_t file_bytes, uint32_t version,
                          uint32_t needs_known, const char **what)
{
    if (file_bytes < STK_SHARD_BLOCK_BYTES)
        return refused(STOKER_ETRUNCATED, what, "the file ends inside its header");
    if (memcmp(from, magic, sizeof(magic)) != 0)
        return refused(STOKER_EMAGIC, what,
                       "not a shard: it does not begin with a shard's magic number");
    if (stk_shard_version(from) != version)
        return refused(STOKER_ENOTSUP, what, "an unknown version of the format");
    if (stk_load_le32(from + STK_SHARD_AT_SUM) != stk_crc32c(0, from, STK_SHARD_AT_SUM))
        return refused(STOKER_ECORRUPT, what, "the header does not match its checksum");
    if ((stk_load_le32(from + STK_SHARD_AT_NEEDS) & ~needs_known) != 0)
        return refused(STOKER_ENOTSUP, what, "it needs an unknown feature");
    if (stk_load_le64(from + STK_SHARD_AT_FILE_BYTES) > file_bytes)
        return refused(STOKER_ETRUNCATED, what, "the file is shorter than its header says");
    if (stk_load_le64(from + STK_SHARD_AT_FILE_BYTES) < file_bytes)
        return refused(STOKER_EOVERSIZE, what,
                       "the file has bytes after the end that its header names");
    if (stk_load_le32(from + STK_SHARD_AT_HEADER_BYTES) != STK_SHARD_BLOCK_BYTES)
        return refused(STOKER_EFORMAT, what,
                       "the header's own fields have another size than this version's");
    return STOKER_OK;
}

const char *stk_shard_numbers_wrong(const struct stk_shard_numbers *numbers)
{
    const uint32_t alignment = numbers->alignment;
    if (alignment == 0 || alignment > STK_SHARD_ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)
        return "the header's alignment is not a power of two up to the limit";
    if (numbers->index_at < STK_SHARD_BLOCK_BYTES ||
        numbers->index_at % STK_SHARD_BLOCK_BYTES != 0 || numbers->index_at > numbers->file_bytes ||
        numbers->file_bytes - numbers->index_at != numbers->index_bytes)
        return "the header puts the index where it cannot be";
    if (numbers->longest_bytes == 0 || numbers->longest_bytes > numbers->index_at)
        return "the header's longest record is 0, or longer than all of them";
    if (numbers->first > UINT64_MAX - numbers->count || numbers->source_count < numbers->count ||
        numbers->source_first > UINT64_MAX - numbers->source_count)
        return "the header's place in the set is impossible";
    return NULL;
}

bool stk_shard_all_zero(const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (from[i] != 0)
            return false;
    }
    return true;
}
