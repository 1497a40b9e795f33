/* dataset.h - the inside of a stoker_dataset: its callbacks and their answers.
 *
 *   open.c         from a spec to a format
 *   dataset.c      create, close, queries
 *   fields.c       the fields that the callbacks describe, checked
 *   part.c         from the bytes of a part to the rows of its fields
 *   read.c         one sample, read in the calling thread
 *   lengths.c      the lengths of a field that varies, without reading
 *   stamps.c       files that changed since they were opened
 *   kept_blocks.c   reads of files that consist of blocks
 *   recall.c       memory of located parts that its owner takes back
 *   identity.c     hashes that identify it in a loader's state and to other processes
 *
 * The pipeline calls dataset->ops->locate(dataset->self, ...) directly, once per span.
 */
#ifndef STK_DATASET_H
#define STK_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/dataset.h>

#include "loader/dataset/kept_blocks.h"
#include "loader/dataset/stamps.h"

/* A field, and what follows from its description. */
struct stk_field {
    stoker_field_info info;
    size_t bytes;       /* one sample's; if it varies, the longest one's */
    size_t entry_bytes; /* one step along the first axis; without axes, the value */
};

/* The fields that one part fills: first..first + count - 1. */
struct stk_part_fields {
    uint32_t first;
    uint32_t count; /* >= 1 */
};

struct stk_mix_plan;

struct stoker_dataset {
    stoker_dataset_ops own; /* a copy of the caller's, which may be an older, shorter struct */
    const stoker_dataset_ops *ops;
    void *self;
    stoker_dataset_info info;            /* checked: see stoker_dataset_create */
    struct stk_field *fields;            /* info.field_count of them */
    struct stk_part_fields *part_fields; /* info.part_count of them */
    struct stk_stamps stamps;            /* taken from its open files */
    struct stk_kept_blocks *kept_blocks; /* NULL = no file consists of blocks */
    stoker_storage *storage; /* shared: what its files are in; of formats only, else NULL */
    /* Fill out[0..count) with the weights of samples, finite and >= 0. Set by views
     * (stoker/views.h); NULL = all have the same weight. Returns 0 or a stoker_err < 0. */
    int (*weights)(const void *self, const uint64_t *ids, uint32_t count, double *out);
    /* [info.part_count] raw parts in memory: see stk_dataset_set_part_rows(). NULL = locate() says
     * where they are. Set by create if info.rows is. */
    const void *const *part_rows;
    bool cheap_rows;                /* see stk_format; of a view: all its sources have it */
    bool recalls;                   /* see stk_dataset_set_recalls(); of a view: a source has it */
    const struct stk_mix_plan *mix; /* sampler/mix.h; set by the view. NULL = one source */
    size_t row_bytes;               /* fields[0].bytes, >= 1 */
    int32_t label;                  /* the field that info.label_dtype is about; -1 = none */
    _Atomic uint32_t references;    /* owners: the caller, each view and each loader of it */
    _Atomic uint64_t fingerprint;   /* 0 = not computed yet: see identity.h */
    /* Returns the fingerprint. Set by views, whose sources take long to fingerprint; any thread may
     * call it. NULL = info.fingerprint. */
    uint64_t (*find_fingerprint)(const void *self);
};

/* Ask for all fields and check them: sets info, fields, part_fields, row_bytes and label. Returns 0
 * or an error that *error explains; what is allocated then is freed by
 * stk_dataset_free_fields(). */
int stk_dataset_take_fields(stoker_dataset *dataset, stoker_error *error);
void stk_dataset_free_fields(stoker_dataset *dataset);

/* Read `bytes` bytes at place.offset of file `number`, in this thread. With `unverified`,
 * check that the file has not changed. Returns 0 or a stoker_err < 0; without descriptor and
 * storage STOKER_ENOTSUP. */
int stk_dataset_read_file(const stoker_dataset *dataset, uint32_t number, void *to, size_t bytes,
                          bool unverified, struct stk_place *place, stoker_error *error);

/* The id that the codec of a located part receives. */
static inline uint64_t stk_codec_id(const stoker_part *part, uint64_t id)
{
    return part->codec_id > 0 ? part->codec_id - 1 : id;
}

/* Returns true if a part with a path is a range of that file, not all of it. */
static inline bool stk_part_is_range(const stoker_part *part)
{
    return part->extent.path != NULL && (part->flags & STOKER_PART_RANGE) != 0;
}

/* Returns what the data set itself contributes to its fingerprint. */
static inline uint64_t stk_dataset_own_fingerprint(const stoker_dataset *dataset)
{
    return dataset->find_fingerprint != NULL ? dataset->find_fingerprint(dataset->self)
                                             : dataset->info.fingerprint;
}

#endif
