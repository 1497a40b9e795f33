/* target.h - the form that samples are packed into: one table of functions per form.
 *
 *   open ─▶ next: a range of samples ─▶ add each of them ─▶ next ... ─▶ finish ─▶ close
 *
 * close() alone leaves no half file under a final name. Used by one thread. A function that fails
 * sets the failure; then only close() may follow.
 */
#ifndef PACK_TARGET_H
#define PACK_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/stoker.h>

#include "datasets/pack/arguments.h"
#include "datasets/shards/layout.h"

struct pack_failure {
    char text[1024];
};

/* What is packed, and how. */
struct pack_plan {
    const struct pack_arguments *arguments;
    const stoker_dataset *source;
    const stoker_dataset_info *info; /* the source's */
    /* [info->field_count], as shards store them */
    struct stk_shard_field fields[STOKER_FIELDS_MAX];
    uint32_t part_count;
    uint64_t shard_samples; /* samples of the source in each shard but the last */
    uint64_t shard_count;
    uint64_t set_id; /* hash of source and options */
    uint32_t rank;   /* this process writes shards rank, rank + world_size, ... */
    uint32_t world_size;
};

/* Consecutive samples of the source. */
struct pack_range {
    uint64_t first, count;
};

struct pack_item;

/* What this process has packed, earlier runs included. */
struct pack_tally {
    uint64_t samples;
    uint64_t kept_samples; /* packed by earlier runs */
    uint64_t bad_samples;  /* left out */
    uint64_t bytes;        /* in all files */
    uint64_t files;
};

struct pack_target {
    /* `plan` outlives the target. On failure *self is NULL, or to be closed. */
    bool (*open)(void **self, const struct pack_plan *plan, struct pack_failure *failure);
    /* Set *range to the samples that are to be added next, in order; its count is 0 if none are
     * left. */
    bool (*next)(void *self, struct pack_range *range, struct pack_failure *failure);
    /* Bad samples are added, too: the target counts them. */
    bool (*add)(void *self, const struct pack_item *item, struct pack_failure *failure);
    bool (*finish)(void *self, struct pack_tally *tally, struct pack_failure *failure);
    void (*close)(void *self); /* NULL is allowed */
};

extern const struct pack_target pack_target_shards;
extern const struct pack_target pack_target_folder;
extern const struct pack_target pack_target_tar;

/* Set the failure to "PATH: what: errno's text", the last part only if os_errno is not 0. Returns
 * false. */
bool pack_fail(struct pack_failure *failure, const char *path, int os_errno, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

#endif
