/* target.h - what samples are packed into: one table of functions a form.
 *
 *   open ──▶ add, a batch at a time ──▶ finish ──▶ close      close alone leaves no half file
 *
 * One thread. A function that fails has filled in the failure, and close is all that may follow.
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

/* What all of them need to know. */
struct pack_plan {
    const struct pack_arguments *arguments;
    const stoker_dataset *source;
    const stoker_dataset_info *info; /* of the source */
    uint64_t set_id;                 /* of what is packed and how: the same again on a resume */
};

/* Where packing that was stopped goes on. All zero: at the beginning. */
struct pack_start {
    uint64_t source_done; /* samples of the source that need not be read again */
    bool finished;        /* nothing is missing */
    stoker_state state;   /* of the loader, if source_done > 0 */
};

/* Samples of the source in their order, those left out as bad not among them. */
struct pack_batch {
    const struct pack_sample *samples;
    uint32_t count;
    uint64_t source_count; /* samples of the source that this batch covers */
    stoker_state before;   /* the loader's, before and after it */
    stoker_state after;
};

/* What stands in the target so far, from earlier runs as well. */
struct pack_tally {
    uint64_t samples;
    uint64_t kept_samples; /* of them, from earlier runs */
    uint64_t bytes;        /* of all files */
    uint64_t files;
};

struct pack_target {
    bool (*open)(void **self, const struct pack_plan *plan, struct pack_start *start,
                 struct pack_failure *failure);
    bool (*add)(void *self, const struct pack_batch *batch, struct pack_failure *failure);
    bool (*finish)(void *self, struct pack_tally *tally, struct pack_failure *failure);
    void (*close)(void *self);
};

extern const struct pack_target pack_target_shards;
extern const struct pack_target pack_target_folder;
extern const struct pack_target pack_target_tar;

/* Fill in the failure: "PATH: what: errno's text" (os_errno 0: left out). Returns false. */
bool pack_fail(struct pack_failure *failure, const char *path, int os_errno, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

#endif
