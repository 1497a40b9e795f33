/* sharing.h - the shards of one packing, written by several ranks that speak through a folder only.
 *
 *   TARGET/.parts/   plan       what is packed, and how: every rank and every later run must agree
 *                    rank-R     see rank_files.h
 *                    part-P     encoded samples, see part_file.h; removed once they lie in shards
 *                    shard-N    complete and on the disk, but a shard before it is missing
 *                    claim-*    locked by the rank that works on it; the lock ends with the process
 *   TARGET/shard-N   complete, and so are all before it
 *
 * Where a shard ends depends on the sizes of all samples before it. So ranks first encode parts, ranges of samples that
 * are the same for any number of ranks, and then each rank walks over the sizes in all parts, in order, as a packer that
 * is alone would: it finds the same borders, claims some of the shards between them, and writes those. Whatever stops a
 * run, the next one finds only complete files, and may have another number of ranks.
 */
#ifndef PACK_SHARING_H
#define PACK_SHARING_H

#include "datasets/pack/part_file.h"
#include "datasets/pack/progress.h"
#include "datasets/pack/rank_files.h"

struct pack_sharing {
    const struct pack_plan *plan;
    struct pack_ranks ranks;
    char folder[PACK_PATH_BYTES]; /* TARGET/.parts */
    uint64_t part_samples;
    uint32_t part_count;
    uint32_t published; /* shards under their final names, as far as known */
    int claim;          /* lock of the shard that is being written; -1 = none */
    char claim_path[PACK_PATH_BYTES];
    bool *complete; /* [part_count]: parts seen to be there */
    /* Parts below `removed` are removed, those below `pending_part` will be once `pending` shards are published. */
    uint32_t removed;
    uint32_t pending_part;
    uint32_t pending;
    struct pack_progress progress; /* sum over all ranks; shown by rank 0 */
};

/* True if several ranks pack, or an earlier run of several ranks left its folder. */
bool pack_sharing_needed(const struct pack_arguments *arguments, const stoker_ranks *ranks);

/* Parts are a multiple of `step` samples of about row_bytes. Nothing is opened. */
bool pack_sharing_set(struct pack_sharing *sharing, const struct pack_plan *plan,
                      const stoker_ranks *ranks, uint32_t step, uint64_t row_bytes,
                      struct pack_failure *failure);

/* After the target was opened, with `published` shards: make the folder, compare the plan, wait until all ranks have come.
 * `state`: where the loader begins, NULL = without one. */
bool pack_sharing_join(struct pack_sharing *sharing, uint32_t published, const stoker_state *state,
                       struct pack_failure *failure);

/* Rank 0 shows progress from now on: `done` samples are packed already. */
void pack_sharing_begin_progress(struct pack_sharing *sharing, uint64_t done);

struct pack_part_place pack_sharing_place(const struct pack_sharing *sharing, uint32_t part);

/* ---- for targets: the shard at hand ---- */

/* Claim shard `number`. 1: this rank writes it, into sharing->folder. 0: another does, or has. -1: failure. */
int pack_sharing_claim(struct pack_sharing *sharing, uint32_t number, struct pack_failure *failure);

/* The claimed shard is complete and on the disk: publish it, if all before it are. */
bool pack_sharing_written(struct pack_sharing *sharing, struct pack_failure *failure);

/* Returns true if shard `number` has its final name. */
bool pack_sharing_is_published(struct pack_sharing *sharing, uint32_t number);

/* ---- for divide.c ---- */

/* Give all complete shards that follow each other their final names, unless another rank is at it. */
bool pack_sharing_publish(struct pack_sharing *sharing, struct pack_failure *failure);

/* Parts below sample `first`, where shard `number` begins, may go once the shards before it are published. */
void pack_sharing_forget(struct pack_sharing *sharing, uint32_t number, uint64_t first);

/* The packing is complete: remove what this rank knows to be of no use, and the folder if no other rank is left. */
void pack_sharing_tidy(struct pack_sharing *sharing);
void pack_sharing_close(struct pack_sharing *sharing); /* all zero is allowed */

#endif
