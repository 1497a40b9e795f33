/* divide.h - the work of one rank: encode parts that no other rank does, and write the shards that it claims.
 *
 *   cursor ─▶ the part at hand is complete? ── yes ─▶ walk over its samples, writing the shards that are ours ─▶ on
 *                                           ── no ──▶ encode the first part that nobody has, or wait
 *
 * A rank only ever waits for a part or a shard that another rank works on, and that rank waits for nobody meanwhile.
 */
#ifndef PACK_DIVIDE_H
#define PACK_DIVIDE_H

#include "datasets/pack/sharing.h"

/* The two kinds of samples: see rows.h and fields.c. */
struct pack_work {
    void *self;
    /* Encode the samples of a place and append them. */
    bool (*encode)(void *self, const struct pack_part_place *place, struct pack_part *to,
                   struct pack_failure *failure);
    /* Walk over the part's samples from `cursor` on, which moves to its end. */
    bool (*walk)(void *self, const struct pack_part_reader *from, struct pack_failure *failure);
    /* Where the walk is in the target. */
    struct pack_shard_point (*point)(void *self);
    /* Leave the shard at hand, which is published, and all that follow it and are; the cursor moves behind them. */
    bool (*skip)(void *self, struct pack_failure *failure);

    uint64_t cursor; /* samples of the source that lie behind the walk */
    bool finished;   /* skipped to the end */
};

/* Walk to the end of the source. */
bool pack_divide(struct pack_sharing *sharing, struct pack_work *work,
                 struct pack_failure *failure);

/* The walk's last shard was ended, and there are `shards` of them: wait until all are published. */
bool pack_divide_end(struct pack_sharing *sharing, uint64_t shards, struct pack_failure *failure);

/* To be called with every batch: this rank has done something. `encoded`: samples. */
bool pack_divide_beat(struct pack_sharing *sharing, uint64_t encoded, struct pack_failure *failure);

#endif
