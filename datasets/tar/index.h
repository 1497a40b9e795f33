/* index.h - index the samples of tar archives by reading their headers. */
#ifndef STK_DATASETS_TAR_INDEX_H
#define STK_DATASETS_TAR_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/dataset.h>

#include "datasets/name_list.h"
#include "datasets/npy/sample.h"
#include "datasets/source.h"

struct stk_tar_sample {
    uint64_t offset; /* the image's in its archive */
    int64_t label;   /* if index.has_labels */
    uint32_t bytes;  /* UINT32_MAX: that or more */
    uint32_t file;
};

/* Where a further member of a sample is, in the archive of its first one. */
struct stk_tar_extent {
    uint64_t offset;   /* STK_TAR_NONE: not seen yet */
    uint32_t bytes;    /* UINT32_MAX: that or more */
    uint32_t spelling; /* which of its field's extensions it has */
};

#define STK_TAR_NONE UINT64_MAX /* no such member */

enum { STK_TAR_FIELDS_MAX = 64 };

/* The members of one field. */
struct stk_tar_field {
    /* "jpg;jpeg": a member has one of them behind its key; case is ignored */
    const char *extensions;
    bool is_array; /* NPY: offset and bytes are those of the elements */
};

struct stk_tar_file {
    char *path;
    struct stk_source source; /* open while the index exists */
};

/* Members other than samples. */
struct stk_tar_counts {
    uint64_t members; /* all of them */
    uint64_t directories;
    uint64_t links;       /* never followed */
    uint64_t devices;     /* or pipes */
    uint64_t strays;      /* names that are absolute or hold ".." */
    uint64_t unknown;     /* sparse files, volume names, unknown types */
    uint64_t keyless;     /* names without a dot inside their last component */
    uint64_t other_files; /* fields that are neither image nor label */
    uint64_t imageless;   /* keys with a label and no image */
    uint64_t cut;         /* truncated archives, with keep_truncated */
    uint64_t cut_samples; /* incomplete keys dropped from truncated archives */
};

struct stk_tar_wish {
    const stoker_storage *storage; /* where the archives are */
    uint64_t bytes_max;            /* memory for the index */
    uint64_t entries_max;          /* members in all archives */
    uint64_t class_count;          /* 0 = from the labels */
    bool keep_truncated;           /* keep the samples of a truncated archive */
    /* field[0] makes a sample: a key without it is stepped over, unless `complete` is set. */
    struct stk_tar_field fields[STK_TAR_FIELDS_MAX];
    uint32_t field_count; /* >= 1 */
    bool takes_labels;    /* .cls is the label; all samples have one, or none */
    bool needs_labels;    /* all have one */
    bool complete;        /* a key that has a member of some field must have one of each */
    bool takes_keys;
};

struct stk_tar_index {
    struct stk_tar_file *files;
    uint32_t file_count;
    struct stk_tar_sample *samples;
    size_t count;
    struct stk_tar_extent *more; /* [count][field_count - 1]: all fields but the first */
    uint32_t more_count;         /* field_count - 1 */
    char *keys;                  /* with takes_keys: one after the other */
    uint64_t *key_ends;          /* [count] */
    struct stk_npy_shape shapes[STK_TAR_FIELDS_MAX];
    bool has_labels;
    struct stk_tar_counts counts;
};

/* Open and index the archives of a list, several at a time. Samples have the order of their
 * archives, and the error is the first archive's that has one. On failure nothing is left open.
 * Errors: those of walk.h and of opening; STOKER_EFORMAT (a field occurs twice, a label is not a
 * number or not a class), STOKER_EMISMATCH (some samples have a label, some not), STOKER_EEMPTY,
 * STOKER_ELIMIT, STOKER_ENOMEM. */
int stk_tar_index_build(struct stk_tar_index *out, const struct stk_name_list *names,
                        const struct stk_tar_wish *wish, stoker_error *error);
void stk_tar_index_free(struct stk_tar_index *index);

#endif
