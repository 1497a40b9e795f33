/* layout.h - encode and decode the shard format, which README.md describes.
 *
 *   0            header, 4096 bytes, the last four of which are its checksum
 *   4096         records, each aligned; zero bytes between them
 *   index_at     entries of 32 bytes, one a record; then the names of the classes
 *   file_bytes   a multiple of 4096, so that blocks of O_DIRECT end with the file
 *
 * Integers are little-endian. Knows no files and takes no memory.
 */
#ifndef STK_DATASETS_SHARDS_LAYOUT_H
#define STK_DATASETS_SHARDS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/codec/kinds.h"

enum {
    STK_SHARD_VERSION = 1,
    STK_SHARD_BLOCK_BYTES = 4096, /* header, index and file end on a multiple of it */
    STK_SHARD_ENTRY_BYTES = 32,
    STK_SHARD_RESUME_BYTES = 64,
    STK_SHARD_ALIGNMENT_MAX = 4096, /* alignment of records, at most */
    STK_SHARD_NAMES_MAX = 16 << 20,
    STK_SHARD_CLASSES_MAX = 1 << 20,
    STK_SHARD_ROW_BYTES_MAX = 1 << 30,
    STK_SHARD_RECORD_CODECS = STK_SHARD_WEBP /* records have a lower codec */
};

/* Flags that a reader must know or refuse: bit c = the shard has records of codec c; the last: the rows have a name. */
#define STK_SHARD_NEEDS_KNOWN 0x3FU
#define STK_SHARD_NAMED       0x20U
/* Flags that a reader may ignore. */
#define STK_SHARD_LAST        1U /* no shard of this set comes after it */

struct stk_shard_header {
    uint32_t needs; /* codecs: STK_SHARD_NAMED is set if there is a name */
    uint32_t flags;
    uint64_t count;      /* records, >= 1 */
    uint64_t file_bytes; /* the whole shard */
    uint64_t index_at;
    uint32_t index_sum; /* CRC-32C of index_at..file_bytes */
    uint32_t names_bytes;
    uint32_t alignment; /* each record's: 1..4096, a power of two */
    uint32_t longest_bytes;
    stoker_dtype dtype;
    stoker_dtype label_dtype;
    uint32_t rank;
    bool is_image;
    uint32_t class_count; /* 0 = unknown */
    uint32_t number;      /* this shard's in its set: 0, 1, ... */
    uint64_t shape[STOKER_RANK_MAX];
    uint64_t first;        /* the set's number of the first record */
    uint64_t source_first; /* samples of what was packed that lie before this shard, ... */
    uint64_t source_count; /* ... and in it, those left out as bad included */
    uint64_t set_id;       /* the same in all shards of a set */
    uint8_t resume[STK_SHARD_RESUME_BYTES]; /* the packer's: where to resume after this shard */
    char name[STOKER_FIELD_NAME_BYTES];     /* name of the rows' field; "" = image or row */
};

struct stk_shard_entry {
    uint64_t offset;
    uint32_t bytes; /* >= 1 */
    uint32_t sum;   /* CRC-32C of those bytes */
    enum stk_shard_codec codec;
    stoker_label label;
};

/* Bytes of a row of the header's shape; 0 = not a legal shape, or over the limit. */
uint64_t stk_shard_row_bytes(const struct stk_shard_header *header);

/* Bytes of index, names and the zero bytes behind them; what index_sum covers. */
uint64_t stk_shard_index_bytes(uint64_t count, uint32_t names_bytes);

/* How records of rows of that size are best aligned: so that the gaps stay below 1 in 16. */
uint32_t stk_shard_alignment(uint64_t row_bytes);

/* `at` moved up to a multiple of a power of two. */
static inline uint64_t stk_shard_align(uint64_t at, uint64_t alignment)
{
    return (at + alignment - 1) & ~(alignment - 1);
}

/* Write the STK_SHARD_BLOCK_BYTES of a header, its checksum included. */
void stk_shard_header_store(uint8_t *to, const struct stk_shard_header *header);

/* Take a header apart and check all that can be checked without the file's other bytes.
 * *what (never NULL) describes the error. STOKER_EMAGIC, STOKER_ENOTSUP (version, flags),
 * STOKER_ECORRUPT (checksum), STOKER_EFORMAT, STOKER_ELIMIT, STOKER_ETRUNCATED, STOKER_EOVERSIZE. */
int stk_shard_header_load(struct stk_shard_header *out, const uint8_t *from, uint64_t file_bytes,
                          const char **what);

void stk_shard_entry_store(uint8_t *to, const struct stk_shard_entry *entry,
                           stoker_dtype label_dtype);

/* Decode an entry. `free_at` is the end of the previous record, and is moved to the end of this one.
 * STOKER_EFORMAT and *what if it breaks a rule: outside the records, overlapping, ... */
int stk_shard_entry_load(struct stk_shard_entry *out, const uint8_t *from,
                         const struct stk_shard_header *header, uint64_t row_bytes,
                         uint64_t *free_at, const char **what);

#endif
