/* index.h - where the samples of a row of tar archives are: made once, by reading headers. */
#ifndef STK_DATASETS_TAR_INDEX_H
#define STK_DATASETS_TAR_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "datasets/source.h"
#include "datasets/tar/pattern.h"

struct stk_tar_sample {
    uint64_t offset; /* of the image's bytes in its archive */
    int64_t label;   /* with index.has_labels */
    uint32_t bytes;  /* UINT32_MAX: as many or more */
    uint32_t file;
};

struct stk_tar_file {
    char *path;
    struct stk_source source; /* open as long as the index */
};

/* What was met, samples aside. */
struct stk_tar_counts {
    uint64_t members; /* all of them */
    uint64_t directories;
    uint64_t links;       /* never followed */
    uint64_t devices;     /* and pipes */
    uint64_t strays;      /* names that are absolute or hold ".." */
    uint64_t unknown;     /* sparse files, volume names, unknown types */
    uint64_t keyless;     /* names without a dot in the middle of their last part */
    uint64_t other_files; /* fields that are neither image nor label */
    uint64_t imageless;   /* keys with a label and no image */
    uint64_t cut;         /* archives that end too early, with keep_truncated */
    uint64_t cut_samples; /* keys dropped as such an archive may have ended within them */
};

struct stk_tar_wish {
    uint64_t bytes_max;   /* of the index */
    uint64_t entries_max; /* members of all archives */
    uint64_t class_count; /* 0 = as the labels say */
    bool keep_truncated;  /* take what an archive holds that ends too early */
};

struct stk_tar_index {
    struct stk_tar_file *files;
    uint32_t file_count;
    struct stk_tar_sample *samples;
    size_t count;
    bool has_labels;
    struct stk_tar_counts counts;
};

/* Open and index the archives of a pattern, several at a time: samples come in the order of their
 * archives all the same, and an error is that of the first archive with one. On failure nothing
 * is left.
 * Errors: those of walk.h and of opening; STOKER_EFORMAT (a field is there twice, a label is
 * no number or no class), STOKER_EMISMATCH (some samples have a label, some not), STOKER_EEMPTY,
 * STOKER_ELIMIT, STOKER_ENOMEM. */
int stk_tar_index_build(struct stk_tar_index *out, const struct stk_tar_pattern *pattern,
                        const struct stk_tar_wish *wish, stoker_error *error);
void stk_tar_index_free(struct stk_tar_index *index);

#endif
