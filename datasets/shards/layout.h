/* layout.h - encode and decode the bytes of a shard: docs/formats/shard_files.md.
 *
 *   0            header, 4096 bytes, the last four of which are its checksum
 *   4096         parts of sample 0, of sample 1, ...; each aligned, with zeros between them,
 *                or blocks: then the parts lie in what the blocks unpack to, one behind the other
 *   index_at     [ fields ][ blocks ][ entries of parts ][ words ][ names of classes ]
 *   file_bytes   a multiple of 4096, so that reads of whole pages with O_DIRECT end with the file
 *
 * Integers are little-endian. Opens no files and allocates no memory.
 */
#ifndef STK_DATASETS_SHARDS_LAYOUT_H
#define STK_DATASETS_SHARDS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/codec/kinds.h"

enum {
    STK_SHARD_VERSION = 3,
    STK_SHARD_PAGE_BYTES = 4096, /* header, index and file end on a multiple of it */
    STK_SHARD_FIELD_BYTES = 160,
    STK_SHARD_BLOCK_BYTES = 24, /* the entry of a block */
    STK_SHARD_PART_BYTES = 24,
    STK_SHARD_WORD_BYTES = 8,
    STK_SHARD_ALIGNMENT_MAX = 4096,
    STK_SHARD_NAMES_MAX = 16 << 20,
    STK_SHARD_CLASSES_MAX = 1 << 20,
    STK_SHARD_VALUE_BYTES_MAX = 1 << 30 /* one field of one sample */
};

/* Features that a reader must know or refuse: bit c = some part or block has codec c; parts lie in
 * blocks. */
#define STK_SHARD_NEEDS_BLOCKS (UINT64_C(1) << 32)
#define STK_SHARD_NEEDS_KNOWN  (STK_SHARD_NEEDS_BLOCKS | ((UINT64_C(1) << STK_SHARD_CODECS) - 1))

struct stk_shard_header {
    uint64_t needs;
    uint64_t file_bytes; /* the whole shard */
    uint64_t index_at;
    uint32_t index_sum;     /* CRC-32C of index_at..file_bytes */
    uint32_t alignment;     /* parts begin at a multiple: 1..4096, a power of two */
    uint64_t longest_bytes; /* the longest part, at least */
    uint64_t count;         /* samples; 0 if all of the source's were bad */
    uint32_t field_count;
    uint32_t part_count;   /* parts of a sample; the other fields are words of the index */
    uint64_t names_bytes;  /* names of the label's classes, each ended by a 0; 0 = none */
    uint64_t set_id;       /* the same in all shards of a set */
    uint32_t number;       /* this shard's in its set: 0, 1, ... */
    uint32_t shard_count;  /* shards of the set */
    uint64_t source_first; /* samples of the packed data set before this shard, ... */
    uint64_t source_count; /* ... and in it, including those left out as bad */
    uint64_t block_count;  /* at most count; 0 without NEEDS_BLOCKS, or if all parts are empty */
    uint64_t block_bytes;  /* of all blocks, unpacked */
};

/* One field as stored. */
struct stk_shard_field {
    char name[STOKER_FIELD_NAME_BYTES];
    stoker_field_kind kind;
    stoker_dtype dtype;
    uint32_t rank;
    bool varies;
    bool sizes_differ;               /* images: not all have the shape */
    uint32_t part;                   /* STOKER_NO_PART: a word of the index */
    uint32_t class_count;            /* 0 = unknown */
    uint64_t shape[STOKER_RANK_MAX]; /* shape[0] is the longest if the field varies */
};

/* One block: samples that are compressed together. */
struct stk_shard_block {
    uint64_t offset;
    uint32_t stored_bytes;
    uint32_t bytes; /* unpacked */
    uint32_t sum;   /* CRC-32C of those */
    uint32_t codec; /* RAW, LZ4 or ZSTD of enum stk_shard_codec */
};

/* One part of one sample. */
struct stk_shard_part {
    uint64_t offset;
    uint64_t bytes; /* 0 only if its field varies */
    uint32_t sum;   /* CRC-32C of those bytes */
    uint32_t codec; /* enum stk_shard_codec */
};

/* Bytes of a field of one sample, the longest if it varies, or of one entry of its first axis; 0 =
 * not a legal shape. */
uint64_t stk_shard_value_bytes(const struct stk_shard_field *field);
uint64_t stk_shard_entry_bytes(const struct stk_shard_field *field);

/* Returns true for images and masks, which may be stored as image files. */
bool stk_shard_is_pixels(const struct stk_shard_field *field);

/* Bytes of the index with the zero bytes behind it; false if they overflow. */
bool stk_shard_index_bytes(const struct stk_shard_header *header, uint64_t *bytes);

/* Where blocks, entries of parts, words and names begin in the index. */
uint64_t stk_shard_blocks_at(const struct stk_shard_header *header);
uint64_t stk_shard_parts_at(const struct stk_shard_header *header);
uint64_t stk_shard_words_at(const struct stk_shard_header *header);
uint64_t stk_shard_names_at(const struct stk_shard_header *header);

/* The alignment of rows of that size: gaps stay below 1 in 16. */
uint32_t stk_shard_alignment(uint64_t row_bytes);

/* Round up to a multiple of a power of two. */
static inline uint64_t stk_shard_align(uint64_t at, uint64_t alignment)
{
    return (at + alignment - 1) & ~(alignment - 1);
}

/* Write the STK_SHARD_PAGE_BYTES of a header with its checksum. */
void stk_shard_header_store(uint8_t *to, const struct stk_shard_header *header);

/* Decode a header and check all that can be checked without the file's other bytes. On failure
 * *what describes the error. STOKER_EMAGIC, STOKER_ENOTSUP (version, features), STOKER_ECORRUPT
 * (checksum), STOKER_EFORMAT, STOKER_ELIMIT, STOKER_ETRUNCATED, STOKER_EOVERSIZE. */
int stk_shard_header_load(struct stk_shard_header *out, const uint8_t *from, uint64_t file_bytes,
                          const char **what);

void stk_shard_field_store(uint8_t *to, const struct stk_shard_field *field);

/* STOKER_EFORMAT and *what if the field breaks a rule. */
int stk_shard_field_load(struct stk_shard_field *out, const uint8_t *from,
                         const struct stk_shard_header *header, const char **what);

void stk_shard_block_store(uint8_t *to, const struct stk_shard_block *block);

/* Decode the entry of a block. *free_at, at first STK_SHARD_PAGE_BYTES, is the end of the block
 * before, and moves to the end of this one; *bytes is the sum of what blocks unpack to.
 * STOKER_EFORMAT and *what if it breaks a rule. */
int stk_shard_block_load(struct stk_shard_block *out, const uint8_t *from,
                         const struct stk_shard_header *header, uint64_t *free_at, uint64_t *bytes,
                         const char **what);

/* Where the first part may begin: in the file, or in what the blocks unpack to. */
static inline uint64_t stk_shard_parts_begin(const struct stk_shard_header *header)
{
    return (header->needs & STK_SHARD_NEEDS_BLOCKS) != 0 ? 0 : STK_SHARD_PAGE_BYTES;
}

void stk_shard_part_store(uint8_t *to, const struct stk_shard_part *part);

/* Decode the entry of a part. *free_at is the end of the part before, and moves to the end of this
 * one. STOKER_EFORMAT and *what if it breaks a rule. */
int stk_shard_part_load(struct stk_shard_part *out, const uint8_t *from,
                        const struct stk_shard_header *header, const struct stk_shard_field *field,
                        uint64_t *free_at, const char **what);

/* Decode the word of a field without a part. Returns false if it cannot be such a value. */
bool stk_shard_word_load(uint64_t *out, const uint8_t *from, const struct stk_shard_field *field);

#endif
