/* set.h - a data set of arrays, each in memory or in a file: what stoker_dataset_from_arrays(),
 * npy: and npz: share.
 *
 *   array        in memory, fixed length, numbers, not the first    ──▶ values(): no part
 *   all others   ──▶ a part each: an extent in memory, or in the file at offset + id x row_bytes
 */
#ifndef STK_DATASETS_ARRAYS_SET_H
#define STK_DATASETS_ARRAYS_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/arrays.h>
#include <stoker/dataset.h>

#include "datasets/source.h"
#include "loader/base/memory/memory.h"

enum { STK_ARRAY_ROW_BYTES_MAX = 1 << 30 };

struct stk_array {
    char name[STOKER_FIELD_NAME_BYTES];
    stoker_field_kind kind;
    stoker_dtype dtype; /* as stored */
    uint32_t rank;
    uint64_t shape[STOKER_RANK_MAX]; /* axes of one sample; varying: shape[0] is the longest */
    uint64_t row_bytes;              /* bytes of one sample; varying: of one entry */
    const void *memory;              /* the samples; NULL = in a file */
    const int64_t *offsets;          /* varying, in memory: [count + 1], in entries; else NULL */
    uint32_t file;                   /* in set->sources */
    uint64_t offset;                 /* where sample 0 begins in the file */
    const stoker_codec *codec;       /* NULL = raw */
    uint32_t class_count;
    const char *const *class_names;
    uint32_t part; /* STOKER_NO_PART: values() copies it. Set by stk_array_set_make */
};

struct stk_array_set {
    const char *format; /* "npy" */
    uint64_t count;     /* samples, >= 1 */
    uint64_t fingerprint;
    struct stk_array *arrays; /* [array_count] */
    uint32_t array_count;
    uint32_t part_count;        /* set by stk_array_set_make */
    const void **part_rows;     /* [part_count] see stk_dataset_set_part_rows(); may be NULL */
    struct stk_source *sources; /* [source_count]; paths are freed with them */
    uint32_t source_count;
    struct stk_region *regions;     /* [array_count]: memory that the set owns; may be NULL */
    void (*release)(void *context); /* may be NULL */
    void *context;
};

/* Decide what is a part, and make the data set, which takes the set. ops is one of stk_array_ops.
 * On failure the set stays the caller's. Errors as stoker_dataset_create. */
int stk_array_set_make(stoker_dataset **out, struct stk_array_set *set,
                       const stoker_dataset_ops *ops, stoker_error *error);

/* Decide what is a part. `beside`: field 0 is another one, so that values() may bring any of
 * these. */
void stk_array_set_plan(struct stk_array_set *set, bool beside);

/* Check what a caller of stoker_dataset_from_arrays() gives, and describe it as a set without
 * release(); array_count may be 0. options may be NULL. On failure *out is untouched. */
int stk_array_set_read(struct stk_array_set **out, const stoker_array *arrays, uint32_t array_count,
                       uint64_t count, const stoker_arrays_options *options, stoker_error *error);

/* The options as the caller's version knows them; what it lacks has its default. */
stoker_arrays_options stk_arrays_options_read(const stoker_arrays_options *given);

/* Close the sources, free their paths and all memory, then the set. Does not call release. */
void stk_array_set_free(struct stk_array_set *set);

/* A set with room for array_count arrays and source_count sources, all zero and closed; NULL: out
 * of memory. */
struct stk_array_set *stk_array_set_new(const char *format, uint32_t array_count,
                                        uint32_t source_count);

/* The callbacks, one table per name that stoker_dataset_name() returns. */
extern const stoker_dataset_ops stk_array_ops_memory;
extern const stoker_dataset_ops stk_array_ops_npy;
extern const stoker_dataset_ops stk_array_ops_npz;

#endif
