/* rank_files.h - what the ranks of one packing know of each other: a file each, in a folder that all of them see.
 *
 *   enter: lock the own file ──▶ ready ──▶ join: until all are ──▶ working | waiting ... ──▶ leave: remove it
 *
 * The kernel drops the lock with the process. So a file that was locked, and is no more, is of a rank that has ended: all
 * others end as well, and name it. A rank that lives but does nothing is found by its file, which it writes again with
 * every batch. The file system does it all, so any launcher will do, on any number of nodes.
 */
#ifndef PACK_RANK_FILES_H
#define PACK_RANK_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "datasets/pack/output.h"

enum pack_rank_state { PACK_RANK_ENTERED, PACK_RANK_READY, PACK_RANK_WORKING, PACK_RANK_WAITING };

enum { PACK_RANK_TEXT_BYTES = 256 };

struct pack_other_rank {
    bool seen;        /* was found alive */
    uint64_t samples; /* packed by it, as it last wrote */
    uint64_t moved_ns;
    char text[PACK_RANK_TEXT_BYTES]; /* its file, when that last changed */
};

struct pack_ranks {
    const char *folder;
    uint32_t rank, world_size;
    uint64_t timeout_ns;
    int fd; /* -1 = not entered */
    enum pack_rank_state state;
    uint64_t samples; /* packed by this rank */
    uint64_t beat;
    uint64_t written_ns, watched_ns;
    struct pack_other_rank *others; /* [world_size] */
};

/* Lock this rank's file. `ranks` has folder, rank, world_size and timeout_ns, all else 0. */
bool pack_ranks_enter(struct pack_ranks *ranks, struct pack_failure *failure);

/* Write state and samples; a mere change of samples at most ten times a second. */
bool pack_ranks_say(struct pack_ranks *ranks, enum pack_rank_state state, uint64_t samples,
                    struct pack_failure *failure);

/* Look after the others, ten times a second at most. False: a rank has ended, or has done nothing for timeout_ns while
 * this one waits for it; the failure names it. The caller checks whether the packing is complete before it believes in
 * a rank that has ended: *gone is set for that. */
bool pack_ranks_watch(struct pack_ranks *ranks, bool *gone, struct pack_failure *failure);

/* True once all are ready. */
bool pack_ranks_joined(const struct pack_ranks *ranks);

/* The first rank that has not been seen; world_size = none. */
uint32_t pack_ranks_missing(const struct pack_ranks *ranks);

/* Samples packed by all of them. */
uint64_t pack_ranks_samples(const struct pack_ranks *ranks);

/* Remove the own file. All zero but fd -1 is allowed. */
void pack_ranks_leave(struct pack_ranks *ranks);

#endif
