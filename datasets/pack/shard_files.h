/* shard_files.h - what packing into shards of either version shares: names of shards, those of earlier runs, and the names
 * of classes as they are stored.
 */
#ifndef PACK_SHARD_FILES_H
#define PACK_SHARD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "datasets/pack/output.h"
#include "datasets/pack/sample.h"
#include "datasets/pack/target.h"

enum { PACK_SHARD_NAME_BYTES = 32 };

/* The name of shard `number` of a set. Returns name. */
const char *pack_shard_name(char name[PACK_SHARD_NAME_BYTES], uint32_t number);

/* Read exactly `size` bytes. */
bool pack_read_at(int fd, void *to, size_t size, uint64_t offset);

/* Returns true if the bytes [index_at, file_bytes) have that CRC-32C. */
bool pack_index_is_whole(int fd, uint64_t index_at, uint64_t file_bytes, uint32_t index_sum);

/* Bytes of an index, one after the other. */
struct pack_span {
    const void *at;
    size_t bytes;
};

/* CRC-32C of the spans and `zeros` bytes of 0 behind them, less than a block. */
uint32_t pack_spans_sum(const struct pack_span *spans, uint32_t count, uint64_t zeros);

/* End a shard: `gap` bytes of 0, the spans, `zeros` bytes of 0, then the header at the start of the file; sync and rename. */
bool pack_shard_end(struct pack_output *output, uint64_t gap, const struct pack_span *spans,
                    uint32_t count, uint64_t zeros, const uint8_t header[STK_SHARD_BLOCK_BYTES],
                    struct pack_failure *failure);

/* Check that the folder has no other shards than numbers 0 to count - 1: foreign ones would be read along with ours. */
bool pack_shards_alone(const char *folder, uint32_t count, struct pack_failure *failure);

/* Append the names of the label's classes, each ended by a 0, if all have one and they fit. False: out of memory. */
bool pack_class_names(const struct pack_plan *plan, struct pack_room *names);

#endif
