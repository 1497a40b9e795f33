/* archive.h - turn the members of archives into samples. */
#ifndef STK_DATASETS_TAR_ARCHIVE_H
#define STK_DATASETS_TAR_ARCHIVE_H

#include "datasets/tar/groups.h"
#include "datasets/tar/index.h"

enum { STK_TAR_SHOWN_BYTES = 120 }; /* longest name in messages */

/* The samples of the archives added so far. */
struct stk_tar_part {
    const struct stk_tar_wish *wish;
    struct stk_tar_sample *samples;
    size_t count, capacity;
    struct stk_tar_extent *more; /* [count][more_count] */
    size_t more_capacity;
    uint32_t more_count;
    char *keys; /* with wish->takes_keys */
    size_t keys_bytes, keys_capacity;
    uint64_t *key_ends; /* [count] */
    size_t key_ends_capacity;
    struct stk_npy_shape shapes[STK_TAR_FIELDS_MAX];
    char first_array[STK_TAR_FIELDS_MAX][STK_TAR_SHOWN_BYTES + 1];
    uint64_t bytes; /* taken by samples and what belongs to them */
    struct stk_tar_counts counts;
    uint64_t labeled; /* samples with and without a label */
    uint64_t unlabeled;
    char first_unlabeled[STK_TAR_SHOWN_BYTES + 1];

    const struct stk_source *source; /* the current archive */
    uint32_t number;
    struct stk_tar_groups groups;
    size_t last_group; /* the one used last */
    stoker_error *error;
};

/* wish must outlive the part. */
void stk_tar_part_init(struct stk_tar_part *part, const struct stk_tar_wish *wish);
void stk_tar_part_free(struct stk_tar_part *part); /* all 0 is allowed */

/* Add the samples of archive `number`. Errors as stk_tar_index_build; after an error the part can
 * only be freed. */
int stk_tar_part_add(struct stk_tar_part *part, const struct stk_source *source, uint32_t number,
                     stoker_error *error);

#endif
