/* target.h - the target of packing: one table of functions per form.
 *
 *   open ──▶ add, a batch at a time ──▶ finish ──▶ close      close alone leaves no half file
 *
 * Used by one thread. A function that fails sets the failure; then only close may follow.
 */
#ifndef PACK_TARGET_H
#define PACK_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/stoker.h>

#include "datasets/pack/arguments.h"
#include "datasets/pack/sample.h"

struct pack_failure {
    char text[1024];
};

struct pack_sharing;

/* What every target needs. */
struct pack_plan {
    const struct pack_arguments *arguments;
    const stoker_dataset *source;
    const stoker_dataset_info *info; /* the source's */
    uint64_t set_id;                 /* hash of source and options; the same on a resume */
    struct pack_sharing *sharing;    /* with other ranks: see sharing.h; NULL = alone */
};

/* The shard at hand: the next one, or the one that is being filled. */
struct pack_shard_point {
    uint32_t number;
    uint64_t source_first; /* samples of the source before it */
    bool ours;             /* this rank writes it */
};

/* Where packing resumes. All zero: at the start. */
struct pack_start {
    uint64_t source_done; /* samples of the source that need not be read again */
    bool finished;        /* everything is packed */
    stoker_state state;   /* the loader's, if source_done > 0 */
};

/* Samples in the order of the source, without bad ones. */
struct pack_batch {
    const struct pack_sample *samples;
    uint32_t count;
    uint64_t source_count; /* samples of the source that this batch covers */
    stoker_state before;   /* the loader's, before and after the batch */
    stoker_state after;
    /* Sets the samples' bytes, if they are not yet. Called only if this rank writes them. NULL = they are set. */
    bool (*load)(void *self, struct pack_failure *failure);
    void *load_self;
};

/* The contents of the target, from earlier runs too. */
struct pack_tally {
    uint64_t samples;
    uint64_t kept_samples; /* samples from earlier runs */
    uint64_t bytes;        /* in all files */
    uint64_t files;
};

struct pack_target {
    bool (*open)(void **self, const struct pack_plan *plan, struct pack_start *start,
                 struct pack_failure *failure);
    bool (*add)(void *self, const struct pack_batch *batch, struct pack_failure *failure);
    bool (*finish)(void *self, struct pack_tally *tally, struct pack_failure *failure);
    void (*close)(void *self);
    /* For forms that several ranks can write; else NULL. skip: leave the shard at hand, which another rank has published,
     * for the first one that nobody has; fills in *start. */
    struct pack_shard_point (*point)(const void *self);
    bool (*skip)(void *self, struct pack_start *start, struct pack_failure *failure);
};

extern const struct pack_target pack_target_shards;
extern const struct pack_target pack_target_folder;
extern const struct pack_target pack_target_tar;

/* Set the failure to "PATH: what: errno's text", the last part only if os_errno is not 0. Returns
 * false. */
bool pack_fail(struct pack_failure *failure, const char *path, int os_errno, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

#endif
