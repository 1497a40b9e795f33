/* fields_layout.h - encode and decode version 2 of the shard format: samples of several fields, in parts.
 *
 *   0            header, 4096 bytes, the last four of which are its checksum
 *   4096         parts of sample 0, of sample 1, ... each aligned; zero bytes between them
 *   index_at     [ fields, 160 bytes each ][ entries, 24 bytes a part ][ labels, 8 bytes a sample ][ names of classes ]
 *   file_bytes   a multiple of 4096
 *
 *   sample 0                          sample 1
 *   [ part 0 ][ part 1 ][ part 2 ]    [ part 0 ][ part 1 ][ part 2 ]
 *     a JPEG    a PNG     12 boxes      a JPEG    a PNG     3 boxes
 *
 * A part fills one field and is stored raw or by a codec of its own. Integers are little-endian. Knows no files and
 * takes no memory.
 */
#ifndef STK_DATASETS_SHARDS_FIELDS_LAYOUT_H
#define STK_DATASETS_SHARDS_FIELDS_LAYOUT_H

#include "datasets/shards/layout.h"

enum {
    STK_SHARD_FIELDS_VERSION = 2,
    STK_SHARD_FIELD_BYTES = 160,
    STK_SHARD_PART_BYTES = 24,
    STK_SHARD_LABEL_BYTES = 8
};

/* Flags that a reader must know or refuse: bit c = some part has codec c. */
#define STK_SHARD_FIELDS_NEEDS_KNOWN 0x3FU

struct stk_fields_header {
    uint32_t needs;
    uint32_t flags; /* STK_SHARD_LAST */
    uint64_t count; /* samples, >= 1 */
    uint64_t file_bytes;
    uint64_t index_at;
    uint32_t index_sum; /* CRC-32C of index_at..file_bytes */
    uint32_t field_count;
    uint32_t part_count;
    uint32_t names_bytes; /* names of the classes, each ended by a 0; 0 = none */
    uint32_t alignment;   /* each part's: 1..4096, a power of two */
    uint32_t longest_bytes;
    uint32_t number; /* this shard's in its set */
    uint64_t first;  /* the set's number of the first sample */
    uint64_t source_first;
    uint64_t source_count;
    uint64_t set_id;
};

/* One field as stored. */
struct stk_fields_field {
    char name[STOKER_FIELD_NAME_BYTES];
    stoker_field_kind kind;
    stoker_dtype dtype;
    uint32_t rank;
    bool varies;
    bool sizes_differ;    /* images: not all have the shape */
    uint32_t part;        /* STOKER_NO_PART: the label, int64 or float32, in the index */
    uint32_t class_count; /* 0 = unknown */
    uint64_t shape[STOKER_RANK_MAX];
};

/* One part of one sample. */
struct stk_fields_part {
    uint64_t offset;
    uint32_t bytes; /* 0 only if its field varies */
    uint32_t sum;   /* CRC-32C of those bytes */
    uint32_t codec; /* enum stk_shard_codec */
};

/* Bytes of a field of one sample, the longest if it varies, or of an entry along its first axis; 0 = not a legal shape. */
uint64_t stk_fields_bytes(const struct stk_fields_field *field);
uint64_t stk_fields_entry_bytes(const struct stk_fields_field *field);

/* Bytes of the index with the zero bytes behind it; false if they overflow. */
bool stk_fields_index_bytes(const struct stk_fields_header *header, uint64_t *bytes);

/* Where entries, labels and names begin in the index. */
uint64_t stk_fields_entries_at(const struct stk_fields_header *header);
uint64_t stk_fields_labels_at(const struct stk_fields_header *header);
uint64_t stk_fields_names_at(const struct stk_fields_header *header);

void stk_fields_header_store(uint8_t *to, const struct stk_fields_header *header);

/* As stk_shard_header_load. */
int stk_fields_header_load(struct stk_fields_header *out, const uint8_t *from, uint64_t file_bytes,
                           const char **what);

void stk_fields_field_store(uint8_t *to, const struct stk_fields_field *field);

/* STOKER_EFORMAT and *what if the field breaks a rule. */
int stk_fields_field_load(struct stk_fields_field *out, const uint8_t *from,
                          const struct stk_fields_header *header, const char **what);

void stk_fields_part_store(uint8_t *to, const struct stk_fields_part *part);

/* Decode a part's entry. `free_at` is the end of the part before, and is moved to the end of this one. STOKER_EFORMAT
 * and *what if it breaks a rule. */
int stk_fields_part_load(struct stk_fields_part *out, const uint8_t *from,
                         const struct stk_fields_header *header,
                         const struct stk_fields_field *field, uint64_t *free_at,
                         const char **what);

#endif
