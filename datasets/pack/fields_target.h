/* fields_target.h - the target of samples with several fields: one table of functions per form.
 *
 *   open ──▶ add, every sample in order, bad ones too ──▶ finish ──▶ close      close alone leaves no half file
 *
 * Used by one thread. A function that fails sets the failure; then only close may follow.
 */
#ifndef PACK_FIELDS_TARGET_H
#define PACK_FIELDS_TARGET_H

#include "datasets/pack/fields_item.h"

/* Where packing resumes; see pack_start. */
struct pack_fields_start {
    uint64_t source_done; /* samples of the source that need not be read again */
    bool finished;        /* everything is packed */
};

struct pack_fields_target {
    /* `fields` outlives the target. On failure *self is NULL, or to be closed. */
    bool (*open)(void **self, const struct pack_fields *fields, struct pack_fields_start *start,
                 struct pack_failure *failure);
    bool (*add)(void *self, const struct pack_item *item, struct pack_failure *failure);
    bool (*finish)(void *self, struct pack_tally *tally, struct pack_failure *failure);
    void (*close)(void *self);
    /* For several ranks, or NULL; see pack_target. */
    struct pack_shard_point (*point)(const void *self);
    bool (*skip)(void *self, struct pack_fields_start *start, struct pack_failure *failure);
};

extern const struct pack_fields_target pack_fields_shards;
extern const struct pack_fields_target pack_fields_tar;
extern const struct pack_fields_target pack_fields_folder;

#endif
