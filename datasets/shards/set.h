/* set.h - a set of shards while it is opened and read; private to this folder.
 *
 *   names ─▶ headers ─▶ consistent? ─▶ indexes ─▶ a codec per field ─▶ callbacks
 *            files.c                   index.c    decoder.c           shards.c
 *
 * Verified indexes lie in memory, 24 bytes a part, so that a lookup is one access.
 */
#ifndef STK_DATASETS_SHARDS_SET_H
#define STK_DATASETS_SHARDS_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/label_column.h"
#include "datasets/opening.h"
#include "datasets/shards/decoder.h"
#include "datasets/shards/known.h"
#include "datasets/shards/layout.h"
#include "datasets/shards/leases.h"
#include "datasets/source.h"
#include "loader/base/memory/memory.h"

/* The shards of a folder: its files *.stk, sorted by name. */
enum { STK_SHARDS_MAX = 65536 };

struct stk_shard_list {
    char **paths;   /* count of them; each freed by stk_free() */
    uint32_t count; /* >= 1 */
    size_t capacity;
    bool numbered; /* has the first one only: its storage cannot list */
};

/* List a folder. STOKER_EEMPTY if there are none, STOKER_ELIMIT over STK_SHARDS_MAX. On failure the
 * list is empty. */
int stk_shard_list_make(struct stk_shard_list *list, const stoker_storage *storage,
                        const char *directory, stoker_error *error);
/* Add the names that stoker-pack gives, up to count. Returns 0, STOKER_ENOMEM or STOKER_ELIMIT. */
int stk_shard_list_number(struct stk_shard_list *list, const char *directory, uint32_t count);
void stk_shard_list_free(struct stk_shard_list *list); /* all zero is allowed */

/* Returns true if a file of that name is a shard. */
bool stk_shard_list_takes(const char *name);

struct stk_shard_file {
    struct stk_source source;
    struct stk_shard_header header;
    stoker_blocks blocks; /* count 0 = none */
    const void *mapping;  /* source.size of it; NULL = not mapped */
    /* What locate() hands out: the mapping until someone wants to write to the file. */
    const uint8_t *_Atomic mapped;
    bool leased;
};

struct stk_shard_set {
    struct stk_shard_list list;
    struct stk_shard_file *files;          /* [list.count] */
    struct stk_shard_decoder *decoders;    /* [field_count] */
    struct stk_shard_decoder **decoder_of; /* [part_count]: of the field that a part fills */
    uint32_t *word_of; /* [field_count]: the word column of a field without a part */
    uint32_t field_count;
    uint32_t part_count;
    uint32_t longest_bytes; /* the longest part, >= 1 */
    uint64_t pixels_max;
    uint64_t count;
    struct stk_region region;         /* records, then words */
    struct stk_shard_record *records; /* [count][part_count] */
    uint64_t *words;                  /* [field_count - part_count][count] */
    uint64_t block_count;             /* of all files; 0 if some samples lie in none */
    stoker_block *blocks;             /* those of each file, and one that ends its table */
    uint64_t *block_first;            /* [block_count]: the first sample of each */
    int32_t label;                  /* the field "label", if it is int64 in the index; -1 = none */
    struct stk_label_column column; /* copy of the labels */
    uint8_t *fields;                /* as the first shard stores them: all must match */
    char *names;                    /* class names, each ended by a 0; NULL = none */
    uint32_t *name_at;
    struct stk_shard_known known; /* if verify=once or map=1 */
    bool maps;
    struct stk_shard_leases leases; /* if map=1 */
};

/* Needed only while opening. */
struct stk_shard_opening {
    struct stk_opening base;
    uint64_t partial; /* 1 = shards may be missing, and come from several sets */
    uint64_t map;     /* 1 = take parts from mapped files once they have been read */
    char verify[STK_PARAMETER_BYTES_MAX]; /* always, once */
    uint64_t bytes_max;
};

/* Set the error "FILE, offset: WHAT" and return code. */
int stk_shard_refuse(const struct stk_shard_opening *opening, const struct stk_shard_file *file,
                     int code, uint64_t offset, const char *what);

/* Set STOKER_EMISMATCH: two shards disagree about `what`. */
int stk_shard_mismatch(const struct stk_shard_opening *opening, const struct stk_shard_file *a,
                       const struct stk_shard_file *b, const char *what);

/* List and open the shards, and check that their headers belong together: sets list, files, count,
 * block_count, field_count, part_count and longest_bytes. On failure the caller frees what is set.
 */
int stk_shard_open_files(struct stk_shard_set *set, const struct stk_shard_opening *opening);

/* Read and verify the indexes: sets decoders (field and codecs), field_of, word_of, blocks,
 * records, words, label, fields and names. On failure the caller frees what is set. */
int stk_shard_load_indexes(struct stk_shard_set *set, const struct stk_shard_opening *opening);

#endif
