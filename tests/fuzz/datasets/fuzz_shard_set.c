/* fuzz_shard_set.c - a good set of three shards with changes, its sums made right: do the shards
 * belong together?
 *
 *   input   1 byte: the shards that are missing; then changes (edits.h), of the three files one
 *           after the other
 */
#include "datasets/shards/layout.h"
#include "fuzz/edits.h"
#include "fuzz/scratch.h"
#include "loader/base/bytes.h"
#include "loader/base/crc32c/crc32c.h"
#include "support/sets/read_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { SHARDS = 3, RECORDS = 2, ROW = 8, INDEX_AT = 8192, SHARD_BYTES = 12288 };

static uint8_t row_byte(uint64_t record)
{
    return (uint8_t)('a' + record);
}

static void seal(uint8_t *shard)
{
    const uint64_t index_at = stk_load_le64(shard + 40);
    if (index_at < SHARD_BYTES)
        stk_store_le32(shard + 48, stk_crc32c(0, shard + index_at, SHARD_BYTES - index_at));
    stk_store_le32(shard + 4092, stk_crc32c(0, shard, 4092));
}

static void make_shard(uint8_t *shard, uint32_t number)
{
    const struct stk_shard_header header = { .needs = 1U << STK_SHARD_RAW,
                                             .file_bytes = SHARD_BYTES,
                                             .index_at = INDEX_AT,
                                             .alignment = 8,
                                             .longest_bytes = ROW,
                                             .count = RECORDS,
                                             .field_count = 2,
                                             .part_count = 1,
                                             .set_id = 77,
                                             .number = number,
                                             .shard_count = SHARDS,
                                             .source_first = (uint64_t)number * RECORDS,
                                             .source_count = RECORDS };
    const struct stk_shard_field row = {
        .name = "row", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { ROW }
    };
    const struct stk_shard_field label = {
        .name = "label", .dtype = STOKER_DTYPE_INT64, .part = STOKER_NO_PART, .class_count = 3
    };
    memset(shard, 0, SHARD_BYTES);
    stk_shard_field_store(shard + INDEX_AT, &row);
    stk_shard_field_store(shard + INDEX_AT + STK_SHARD_FIELD_BYTES, &label);
    for (uint32_t i = 0; i < RECORDS; i++) {
        const uint64_t at = 4096 + (uint64_t)i * ROW;
        memset(shard + at, row_byte(header.source_first + i), ROW);
        const struct stk_shard_part part = { .offset = at,
                                             .bytes = ROW,
                                             .sum = stk_crc32c(0, shard + at, ROW),
                                             .codec = STK_SHARD_RAW };
        stk_shard_part_store(shard + INDEX_AT + stk_shard_parts_at(&header) +
                                 (size_t)i * STK_SHARD_PART_BYTES,
                             &part);
        stk_store_le64(
            shard + INDEX_AT + stk_shard_words_at(&header) + (size_t)i * STK_SHARD_WORD_BYTES, i);
    }
    stk_shard_header_store(shard, &header);
    seal(shard);
}

/* All three shards there and unchanged: the whole set must open. */
static void check_whole(const stoker_dataset *dataset)
{
    uint8_t row[ROW];
    STK_FUZZ_CHECK(stoker_dataset_get_info(dataset)->count == SHARDS * RECORDS);
    for (uint64_t id = 0; id < SHARDS * RECORDS; id++) {
        STK_FUZZ_CHECK(stk_read_row(dataset, id, row, sizeof(row), NULL, NULL) == 0);
        STK_FUZZ_CHECK(row[0] == row_byte(id) && row[ROW - 1] == row_byte(id));
    }
}

static void open_set(const char *parameters, void (*look_at)(const stoker_dataset *dataset))
{
    char spec[STK_FUZZ_PATH_BYTES];
    (void)snprintf(spec, sizeof(spec), "shards:%s%s", stk_fuzz_folder, parameters);
    stk_fuzz_open(spec, look_at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static uint8_t set[SHARDS * SHARD_BYTES];
    (void)stk_fuzz_begins();
    for (uint32_t i = 0; i < SHARDS; i++)
        make_shard(set + (size_t)i * SHARD_BYTES, i);
    const bool whole = size < 4;
    const uint8_t missing = size == 0 || whole ? 0 : bytes[0];
    if (!whole)
        stk_fuzz_edit(set, sizeof(set), bytes + 1, size - 1);
    for (uint32_t i = 0; i < SHARDS; i++) {
        char name[16];
        char path[STK_FUZZ_PATH_BYTES];
        uint8_t *shard = set + (size_t)i * SHARD_BYTES;
        (void)snprintf(name, sizeof(name), "%u.stk", i);
        seal(shard);
        if ((missing >> i & 1) != 0)
            (void)unlink(stk_fuzz_path(path, name));
        else
            stk_fuzz_write(name, shard, SHARD_BYTES);
    }
    open_set("", whole ? check_whole : stk_fuzz_rows);
    open_set("?partial=1", stk_fuzz_rows);
    return 0;
}
