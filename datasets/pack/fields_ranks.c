/* fields_ranks.c - see fields_ranks.h. */
#include "datasets/pack/fields_ranks.h"

#include <errno.h>
#include <stdlib.h>

enum { BEAT_SAMPLES = 256 };

struct rank {
    const struct pack_fields_walk *with;
    struct pack_work work;
    const struct pack_part_reader *from; /* the part at hand */
    uint64_t first;                      /* entry of the sample at hand */
    struct pack_item *item;              /* the sample at hand */
    struct pack_room room;               /* its bytes */
};

bool pack_fields_keep(const struct pack_fields *fields, const struct pack_item *item,
                      struct pack_part *to, struct pack_failure *failure)
{
    for (uint32_t p = 0; !item->bad && p < fields->part_count; p++) {
        const struct pack_piece *piece = &item->pieces[p];
        const struct pack_part_entry entry = { .id = item->id,
                                               .label = item->label,
                                               .codec = piece->codec };
        if (!pack_part_add(to, &entry, piece->bytes, piece->size, failure))
            return false;
    }
    return true;
}

/* The sample at hand is of a shard that this rank writes. */
static bool load(void *self, struct pack_failure *failure)
{
    struct rank *rank = self;
    const uint32_t parts = rank->with->fields->part_count;
    const struct pack_part_entry *entries = rank->from->entries + rank->first;
    if (!pack_part_read(rank->from, rank->first, parts, &rank->room, failure))
        return false;
    for (uint32_t p = 0; p < parts; p++)
        rank->item->pieces[p].bytes = rank->room.at + (entries[p].offset - entries[0].offset);
    return true;
}

static bool walk_sample(struct rank *rank, uint64_t id, struct pack_failure *failure)
{
    struct pack_item *item = rank->item;
    const uint32_t parts = rank->with->fields->part_count;
    const uint64_t entries = pack_part_find(rank->from, id + 1) - rank->first;
    item->id = id;
    item->bad = entries == 0;
    item->load = load;
    item->load_self = rank;
    if (entries != 0 && entries != parts)
        return pack_fail(failure, rank->from->path, 0, "a sample has too few or too many parts");
    for (uint32_t p = 0; p < entries; p++) {
        const struct pack_part_entry *entry = &rank->from->entries[rank->first + p];
        item->label = entry->label;
        item->pieces[p].bytes = NULL; /* see load() */
        item->pieces[p].size = entry->bytes;
        item->pieces[p].codec = entry->codec;
    }
    if (!rank->with->target->add(rank->with->into, item, failure))
        return false;
    rank->first += entries;
    return id % BEAT_SAMPLES != 0 ||
           pack_divide_beat(rank->with->fields->plan->sharing, 0, failure);
}

static bool walk(void *self, const struct pack_part_reader *from, struct pack_failure *failure)
{
    struct rank *rank = self;
    rank->from = from;
    rank->first = pack_part_find(from, rank->work.cursor);
    for (; rank->work.cursor < from->place.first + from->place.count; rank->work.cursor++)
        if (!walk_sample(rank, rank->work.cursor, failure))
            return false;
    return true;
}

static bool encode(void *self, const struct pack_part_place *place, struct pack_part *to,
                   struct pack_failure *failure)
{
    const struct rank *rank = self;
    return rank->with->encode(rank->with->encode_self, place, to, failure);
}

static struct pack_shard_point point(void *self)
{
    const struct rank *rank = self;
    return rank->with->target->point(rank->with->into);
}

static bool skip(void *self, struct pack_failure *failure)
{
    struct rank *rank = self;
    struct pack_fields_start start;
    if (!rank->with->target->skip(rank->with->into, &start, failure))
        return false;
    rank->work.cursor = start.source_done;
    rank->work.finished = start.finished;
    return true;
}

bool pack_fields_divide(const struct pack_fields_walk *with, const struct pack_fields_start *start,
                        struct pack_tally *tally, struct pack_failure *failure)
{
    struct pack_sharing *sharing = with->fields->plan->sharing;
    struct rank rank = { .with = with,
                         .work = { .encode = encode, .walk = walk, .point = point, .skip = skip },
                         .item = calloc(1, sizeof(*rank.item)) };
    rank.work.self = &rank;
    rank.work.cursor = start->source_done;
    if (rank.item == NULL)
        return pack_fail(failure, sharing->folder, ENOMEM, "a sample");
    const bool good =
        pack_sharing_join(sharing, with->target->point(with->into).number, NULL, failure) &&
        pack_divide(sharing, &rank.work, failure) &&
        with->target->finish(with->into, tally, failure) &&
        pack_divide_end(sharing, tally->files, failure);
    pack_room_free(&rank.room);
    free(rank.item);
    return good;
}
