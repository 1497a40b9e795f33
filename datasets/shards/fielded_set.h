/* fielded_set.h - shards of version 2 while they are opened and read; private to fielded*.c. */
#ifndef STK_DATASETS_SHARDS_FIELDED_SET_H
#define STK_DATASETS_SHARDS_FIELDED_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/opening.h"
#include "datasets/shards/field_decoder.h"
#include "datasets/shards/fields_layout.h"
#include "datasets/shards/list.h"
#include "datasets/source.h"
#include "loader/base/memory.h"

/* A part of a sample in memory. */
struct stk_fielded_part {
    uint64_t offset;
    uint32_t bytes;
    uint32_t sum;
    uint32_t file;
    uint32_t codec;
};

struct stk_fielded_file {
    struct stk_source source;
    struct stk_fields_header header;
};

struct stk_fielded {
    struct stk_shard_list list;
    struct stk_fielded_file *files;     /* [list.count] */
    struct stk_field_decoder *decoders; /* [field_count] */
    uint32_t *field_of;                 /* [part_count]: the field that a part fills */
    uint32_t field_count;
    uint32_t part_count;
    uint32_t longest_bytes;
    uint64_t pixels_max;
    uint64_t count;
    struct stk_region region;       /* parts, then labels */
    struct stk_fielded_part *parts; /* [count][part_count] */
    stoker_label *labels;           /* [count] */
    uint8_t *index;                 /* fields and names of the first shard */
    const char **names;             /* [class_count] of the label; NULL = none */
    uint32_t class_count;
};

/* Needed only while opening. */
struct stk_fielded_opening {
    const struct stk_opening *base;
    bool partial; /* shards may be missing, and come from several sets */
    uint64_t bytes_max;
};

/* Set the error "FILE, offset: WHAT" and return code. */
int stk_fielded_refuse(const struct stk_fielded_opening *opening,
                       const struct stk_fielded_file *file, int code, uint64_t offset,
                       const char *what);

/* Set STOKER_EMISMATCH: two shards disagree about `what`. */
int stk_fielded_mismatch(const struct stk_fielded_opening *opening,
                         const struct stk_fielded_file *a, const struct stk_fielded_file *b,
                         const char *what);

/* List and open the shards, and check that their headers belong together: sets list, files, count, field_count,
 * part_count and longest_bytes. What is set on failure is the caller's to free. */
int stk_fielded_open_files(struct stk_fielded *set, const struct stk_fielded_opening *opening);

/* Read the indexes of the open files: sets all members but pixels_max, and of decoders what stk_field_decoder_init()
 * needs. What is set on failure is the caller's to free. */
int stk_fielded_load_indexes(struct stk_fielded *set, const struct stk_fielded_opening *opening);

#endif
