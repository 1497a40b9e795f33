/* divide.c - see divide.h. */
#include "datasets/pack/divide.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "datasets/pack/lock.h"

enum { PAUSE_NS = 3000000 };

static void show(struct pack_sharing *sharing)
{
    const uint64_t done = sharing->progress.begun_at + pack_ranks_samples(&sharing->ranks);
    const uint64_t count = sharing->progress.count;
    pack_progress_show(&sharing->progress, done < count ? done : count);
}

bool pack_divide_beat(struct pack_sharing *sharing, uint64_t encoded, struct pack_failure *failure)
{
    struct pack_ranks *ranks = &sharing->ranks;
    show(sharing);
    return pack_ranks_say(ranks, PACK_RANK_WORKING, ranks->samples + encoded, failure);
}

/* ---- the others ----------------------------------------------------------------- */

/* A rank that has gone may have done so because all is done, which this one has yet to see. */
static bool watch(struct pack_sharing *sharing, struct pack_work *work, bool *gone,
                  struct pack_failure *failure)
{
    if (pack_ranks_watch(&sharing->ranks, gone, failure))
        return true;
    if (!*gone || work->point(work->self).ours)
        return false;
    struct pack_failure ended = *failure;
    if (pack_sharing_is_published(sharing, work->point(work->self).number) &&
        !work->skip(work->self, failure))
        return false;
    if (work->finished)
        return true;
    *failure = ended;
    return false;
}

static bool wait_a_moment(struct pack_sharing *sharing, struct pack_failure *failure)
{
    show(sharing);
    (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    return pack_ranks_say(&sharing->ranks, PACK_RANK_WAITING, sharing->ranks.samples, failure) &&
           pack_sharing_publish(sharing, failure);
}

/* ---- parts ---------------------------------------------------------------------- */

static bool is_there(const struct pack_sharing *sharing, const struct pack_part_place *place)
{
    struct pack_part_reader reader;
    const bool there = pack_part_open(&reader, sharing->folder, place);
    pack_part_close(&reader);
    return there;
}

/* Under a claim. */
static bool encode_part(struct pack_sharing *sharing, struct pack_work *work,
                        const struct pack_part_place *place, struct pack_failure *failure)
{
    struct pack_part part = { .at = 0 };
    if (is_there(sharing, place)) /* another rank was faster */
        return true;
    const bool good = pack_part_begin(&part, sharing->folder, place, failure) &&
                      work->encode(work->self, place, &part, failure) &&
                      pack_part_commit(&part, failure);
    pack_part_drop(&part);
    return good;
}

/* Encode the first part from `first` on that is missing and that no other rank is at. *any: there was one. */
static bool encode_one(struct pack_sharing *sharing, struct pack_work *work, uint32_t first,
                       bool *any, struct pack_failure *failure)
{
    for (uint32_t number = first; !*any && number < sharing->part_count; number++) {
        char path[PACK_PATH_BYTES + 32];
        bool taken = false;
        const struct pack_part_place place = pack_sharing_place(sharing, number);
        if (sharing->complete[number])
            continue;
        (void)snprintf(path, sizeof(path), "%s/claim-part-%u", sharing->folder, number);
        const int claim = pack_claim(path, &taken, failure);
        if (claim < 0 && !taken)
            return false;
        if (claim < 0)
            continue;
        *any = !is_there(sharing, &place);
        const bool good = !*any || encode_part(sharing, work, &place, failure);
        pack_claim_end(claim, path);
        if (!good)
            return false;
        sharing->complete[number] = true;
    }
    return true;
}

/* ---- the walk ------------------------------------------------------------------- */

/* Walk over the part at hand. *walked: it was there. */
static bool walk_part(struct pack_sharing *sharing, struct pack_work *work, uint32_t number,
                      bool *walked, struct pack_failure *failure)
{
    struct pack_part_reader reader;
    const struct pack_part_place place = pack_sharing_place(sharing, number);
    *walked = pack_part_open(&reader, sharing->folder, &place);
    sharing->complete[number] = *walked;
    const bool good = !*walked || work->walk(work->self, &reader, failure);
    pack_part_close(&reader);
    return good;
}

/* One turn: a part walked over, or encoded, or a moment waited. */
static bool turn(struct pack_sharing *sharing, struct pack_work *work, struct pack_failure *failure)
{
    bool gone = false;
    bool done = false;
    const struct pack_shard_point point = work->point(work->self);
    if (!point.ours && pack_sharing_is_published(sharing, point.number))
        return work->skip(work->self, failure);
    const uint32_t part = (uint32_t)(work->cursor / sharing->part_samples);
    if (!walk_part(sharing, work, part, &done, failure))
        return false;
    if (done) {
        if (sharing->ranks.rank == 0)
            pack_sharing_forget(sharing, work->point(work->self).number,
                                work->point(work->self).source_first);
        return true;
    }
    if (!watch(sharing, work, &gone, failure))
        return false;
    if (work->finished)
        return true;
    return encode_one(sharing, work, part, &done, failure) &&
           (done || wait_a_moment(sharing, failure));
}

bool pack_divide(struct pack_sharing *sharing, struct pack_work *work, struct pack_failure *failure)
{
    const uint64_t count = sharing->plan->info->count;
    while (!work->finished && work->cursor < count)
        if (!turn(sharing, work, failure))
            return false;
    return true;
}

bool pack_divide_end(struct pack_sharing *sharing, uint64_t shards, struct pack_failure *failure)
{
    const uint32_t last = (uint32_t)shards - 1;
    while (!pack_sharing_is_published(sharing, last)) {
        bool gone = false;
        if (!wait_a_moment(sharing, failure))
            return false;
        if (!pack_ranks_watch(&sharing->ranks, &gone, failure)) {
            if (!gone || !pack_sharing_is_published(sharing, last))
                return false;
            failure->text[0] = '\0';
        }
    }
    return true;
}
