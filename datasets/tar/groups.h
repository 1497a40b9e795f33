/* groups.h - group the members of one archive by key.
 *
 *   train/0017.png, train/0017.cls  ->  one group, key "train/0017"
 *
 * The members of a key need not be adjacent. Memory is reused for the next archive.
 */
#ifndef STK_DATASETS_TAR_GROUPS_H
#define STK_DATASETS_TAR_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "datasets/tar/index.h"

struct stk_tar_group {
    uint64_t hash;
    size_t key; /* offset in groups.keys */
    uint32_t key_bytes;
    uint64_t label_at; /* offset in the archive, or STK_TAR_NONE */
    int64_t label;
    struct stk_tar_extent first; /* field 0's */
};

struct stk_tar_groups {
    struct stk_tar_group *at; /* in the order of their first members */
    size_t count, capacity;
    struct stk_tar_extent *more; /* [capacity][more_count]: of the other fields */
    size_t more_capacity;
    uint32_t more_count;
    uint32_t *slots; /* by hash: a group's index + 1, or 0 */
    size_t slot_count;
    char *keys;
    size_t keys_bytes, keys_capacity;
    uint64_t seed;      /* for the hash */
    uint64_t bytes;     /* allocated, all three */
    uint64_t bytes_max; /* else STOKER_ELIMIT */
};

void stk_tar_groups_init(struct stk_tar_groups *groups, uint32_t more_count, uint64_t bytes_max);
void stk_tar_groups_free(struct stk_tar_groups *groups); /* all 0 is allowed */

/* Remove all groups, keep the memory. */
void stk_tar_groups_clear(struct stk_tar_groups *groups);

/* Find or add the group of a key; *out is valid until the next call. STOKER_ENOMEM,
 * STOKER_ELIMIT. */
int stk_tar_groups_find(struct stk_tar_groups *groups, const char *key, size_t key_bytes,
                        struct stk_tar_group **out);

/* Grow an array of `count` elements; *bytes counts its memory. STOKER_ENOMEM, STOKER_ELIMIT. */
int stk_tar_grow(void **array, size_t element_bytes, size_t count, size_t *capacity,
                 uint64_t *bytes, uint64_t bytes_max);

#endif
