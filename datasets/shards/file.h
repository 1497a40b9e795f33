/* file.h - one shard, opened and verified: its header, its index, the names in it. */
#ifndef STK_DATASETS_SHARDS_FILE_H
#define STK_DATASETS_SHARDS_FILE_H

#include <stdint.h>
#include <stoker/error.h>

#include "datasets/shards/layout.h"
#include "datasets/source.h"

struct stk_shard_file {
    struct stk_source source;
    struct stk_shard_header header;
    const uint8_t *mapped; /* header.file_bytes of it; NULL = not mapped */
};

/* A record as it is kept in memory: as large as an entry, so that an index is read to where its
 * records will lie. */
struct stk_shard_record {
    uint64_t offset;
    stoker_label label;
    uint32_t bytes;
    uint32_t sum;
    uint32_t file;
    uint32_t codec; /* enum stk_shard_codec */
};

/* Open a shard and check its header. path must outlive the file. On failure it is closed. */
int stk_shard_file_open(struct stk_shard_file *file, const char *path, stoker_error *error);
void stk_shard_file_close(struct stk_shard_file *file); /* all zero, or closed, is allowed */

/* Map an open shard, until it is closed. If the file is cut short meanwhile, or cannot be read, a touch of the missing
 * part ends the process (SIGBUS). */
int stk_shard_file_map(struct stk_shard_file *file, stoker_error *error);

/* Read and verify the index: header.count records, each said to be in file number `number`, and
 * the header.names_bytes of the names. On failure records and names hold anything. */
int stk_shard_file_index(const struct stk_shard_file *file, uint32_t number,
                         struct stk_shard_record *records, char *names, stoker_error *error);

#endif
