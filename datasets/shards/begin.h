/* begin.h - what the headers of both versions of the shard format share: their first 52 bytes, the checksum in the last
 * four, and the rules of the numbers that both have.
 *
 *   0 magic  8 version  12 needs  16 flags  20 header bytes  24 count  32 file bytes  40 index  48 alignment
 *   52       what belongs to the version
 *   4092     CRC-32C of bytes 0 to 4091
 */
#ifndef STK_DATASETS_SHARDS_BEGIN_H
#define STK_DATASETS_SHARDS_BEGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STK_SHARD_AT_MAGIC = 0,
    STK_SHARD_AT_VERSION = 8,
    STK_SHARD_AT_NEEDS = 12,
    STK_SHARD_AT_FLAGS = 16,
    STK_SHARD_AT_HEADER_BYTES = 20,
    STK_SHARD_AT_COUNT = 24,
    STK_SHARD_AT_FILE_BYTES = 32,
    STK_SHARD_AT_INDEX = 40,
    STK_SHARD_AT_ALIGNMENT = 48,
    STK_SHARD_AT_SUM = 4092
};

/* Numbers that both versions have, by any name of what is stored. */
struct stk_shard_numbers {
    uint32_t alignment;
    uint32_t longest_bytes;
    uint64_t count;
    uint64_t file_bytes;
    uint64_t index_at;
    uint64_t index_bytes; /* as computed from the other numbers */
    uint64_t first;
    uint64_t source_first;
    uint64_t source_count;
};

/* Version of a shard whose first 12 bytes these are; 0 = not a shard. */
uint32_t stk_shard_version(const uint8_t *from);

/* Set all 4096 bytes to 0, then magic number, version and length of the header. */
void stk_shard_begin_store(uint8_t *to, uint32_t version);

/* Store the checksum, after everything else. */
void stk_shard_begin_sum(uint8_t *to);

/* Check magic number, version, checksum, `needs` against those known, and the length of the file and of the header. *what
 * describes the error. STOKER_ETRUNCATED, STOKER_EMAGIC, STOKER_ENOTSUP, STOKER_ECORRUPT, STOKER_EOVERSIZE, STOKER_EFORMAT. */
int stk_shard_begin_check(const uint8_t *from, uint64_t file_bytes, uint32_t version,
                          uint32_t needs_known, const char **what);

/* Returns NULL, or which number breaks a rule. */
const char *stk_shard_numbers_wrong(const struct stk_shard_numbers *numbers);

/* Returns true if `size` bytes are 0. */
bool stk_shard_all_zero(const uint8_t *from, size_t size);

#endif
