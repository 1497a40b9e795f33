/* fields_ranks.h - samples of several fields, packed by several ranks: encoded into parts, and from parts into shards. */
#ifndef PACK_FIELDS_RANKS_H
#define PACK_FIELDS_RANKS_H

#include "datasets/pack/divide.h"
#include "datasets/pack/fields_target.h"

/* Append a sample's pieces to a part, unless it is bad. */
bool pack_fields_keep(const struct pack_fields *fields, const struct pack_item *item,
                      struct pack_part *to, struct pack_failure *failure);

/* What a rank needs; the caller's. */
struct pack_fields_walk {
    const struct pack_fields *fields;
    const struct pack_fields_target *target;
    void *into;
    /* Encode the samples of a place: pack_fields_keep() of each. */
    bool (*encode)(void *self, const struct pack_part_place *place, struct pack_part *to,
                   struct pack_failure *failure);
    void *encode_self;
};

/* Pack together with the other ranks; the target is open, and `start` is what it said. Then finish and tally. */
bool pack_fields_divide(const struct pack_fields_walk *walk, const struct pack_fields_start *start,
                        struct pack_tally *tally, struct pack_failure *failure);

#endif
