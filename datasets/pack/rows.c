/* rows.c - see rows.h. */
#include "datasets/pack/rows.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- through the loader --------------------------------------------------------- */

/* The source's own order, from `self` on: the first sample of a part. */
static int ids_of_part(void *self, uint64_t epoch, uint64_t position, uint64_t stride,
                       uint32_t count, uint64_t *ids_out, stoker_error *error)
{
    const uint64_t *const first = self;
    (void)epoch;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        ids_out[i] = *first + position + i * stride;
    return STOKER_OK;
}

static bool create(stoker_loader **out, const struct pack_plan *plan,
                   const stoker_loader_options *options, struct pack_failure *failure)
{
    stoker_error error = { .message = "" };
    return stoker_loader_create(out, plan->source, options, &error) == STOKER_OK ||
           pack_fail(failure, plan->arguments->source, 0, "%s", error.message);
}

static stoker_loader_options options_of(const struct pack_plan *plan, uint32_t batch_size)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = batch_size;
    options.num_workers =
        plan->arguments->workers > 0 ? plan->arguments->workers : STOKER_WORKERS_AUTO;
    options.epochs = 1;
    options.device = STOKER_DEVICE_CPU;
    options.pin_memory = STOKER_SWITCH_OFF;
    options.cache = STOKER_CACHE_NONE;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    return options;
}

bool pack_rows_loader(stoker_loader **out, const struct pack_plan *plan, uint32_t batch_size,
                      const struct pack_part_place *place, const stoker_state *resume,
                      struct pack_failure *failure)
{
    stoker_order order = STOKER_ORDER_INIT;
    stoker_loader_options options = options_of(plan, batch_size);
    options.resume = resume;
    if (place != NULL) {
        order.kind = STOKER_ORDER_OWN;
        order.length = place->count;
        order.ids = ids_of_part;
        order.self = (void *)&place->first; /* outlives the loader */
        options.order = &order;
    }
    return create(out, plan, &options, failure);
}

bool pack_rows_begin(stoker_state *begin, const struct pack_plan *plan, uint32_t batch_size,
                     struct pack_failure *failure)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options = options_of(plan, batch_size);
    options.num_workers = 0; /* reads nothing before next() */
    if (!create(&loader, plan, &options, failure))
        return false;
    const int rc = stoker_loader_state(loader, begin);
    stoker_loader_destroy(&loader);
    return rc == STOKER_OK ||
           pack_fail(failure, plan->arguments->source, 0, "the loader has no state");
}

static stoker_label label_at(const struct pack_plan *plan, const stoker_batch *batch, uint32_t at)
{
    stoker_label label = { .index = 0 };
    if (plan->info->label_dtype == STOKER_DTYPE_INT64)
        label.index = ((const int64_t *)batch->labels.data)[at];
    else if (plan->info->label_dtype == STOKER_DTYPE_FLOAT32)
        label.value = ((const float *)batch->labels.data)[at];
    return label;
}

bool pack_rows_encode(const struct pack_plan *plan, struct pack_encoder *encoder,
                      struct pack_sample *samples, const stoker_batch *batch,
                      struct pack_failure *failure)
{
    const size_t row_bytes = stoker_dataset_row_bytes(plan->source);
    for (uint32_t i = 0; i < batch->count; i++) {
        samples[i].id = batch->ids[i];
        samples[i].row = (const uint8_t *)batch->images.data + i * row_bytes;
        samples[i].label = label_at(plan, batch, i);
    }
    pack_encoder_run(encoder, samples, batch->count);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (samples[i].failed != NULL)
            return pack_fail(failure, plan->arguments->source, 0, "sample %" PRIu64 ": %s",
                             samples[i].id, samples[i].failed);
    }
    return true;
}

void pack_rows_report_bad(const stoker_loader *loader)
{
    stoker_error error;
    for (uint64_t i = 0; loader != NULL && stoker_loader_bad_sample(loader, i, &error) == STOKER_OK;
         i++)
        (void)fprintf(stderr, "stoker-pack: left out: %s\n", error.message);
}

/* ---- a part --------------------------------------------------------------------- */

struct rank {
    struct pack_rows *rows;
    struct pack_work work;
    const struct pack_part_reader *from; /* the part at hand */
    uint64_t first, count;               /* entries of the batch at hand */
    struct pack_room room;               /* their bytes */
};

static bool append(struct pack_part *to, const struct pack_sample *samples, uint32_t count,
                   struct pack_failure *failure)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct pack_part_entry entry = { .id = samples[i].id,
                                               .label = samples[i].label,
                                               .codec = samples[i].codec };
        if (!pack_part_add(to, &entry, samples[i].bytes, samples[i].size, failure))
            return false;
    }
    return true;
}

static bool encode(void *self, const struct pack_part_place *place, struct pack_part *to,
                   struct pack_failure *failure)
{
    struct pack_rows *rows = ((struct rank *)self)->rows;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_OK;
    bool good = pack_rows_loader(&loader, rows->plan, rows->batch_size, place, NULL, failure);
    while (good && (rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        good = pack_rows_encode(rows->plan, rows->encoder, rows->samples, &batch, failure) &&
               append(to, rows->samples, batch.count, failure) &&
               pack_divide_beat(rows->plan->sharing, batch.count, failure);
        stoker_batch_release(&batch);
    }
    /* EBADSAMPLES: no sample of this part is good, which is no reason to end. */
    if (good && rc < 0 && rc != STOKER_EBADSAMPLES)
        good = pack_fail(failure, rows->plan->arguments->source, 0, "%s",
                         stoker_loader_error(loader)->message);
    if (good)
        pack_rows_report_bad(loader);
    stoker_loader_destroy(&loader);
    return good;
}

/* ---- the walk ------------------------------------------------------------------- */

/* The batch at hand is of a shard that this rank writes. */
static bool load(void *self, struct pack_failure *failure)
{
    struct rank *rank = self;
    const struct pack_part_entry *entries = rank->from->entries + rank->first;
    if (!pack_part_read(rank->from, rank->first, rank->count, &rank->room, failure))
        return false;
    for (uint64_t i = 0; i < rank->count; i++)
        rank->rows->samples[i].bytes = rank->room.at + (entries[i].offset - entries[0].offset);
    return true;
}

/* The loader's state behind `position` samples. */
static bool state_at(const struct pack_rows *rows, uint64_t position, stoker_state *state,
                     struct pack_failure *failure)
{
    stoker_error error = { .message = "" };
    *state = rows->begin;
    return stoker_state_seek(state, 0, position, &error) == STOKER_OK ||
           pack_fail(failure, rows->plan->arguments->source, 0, "%s", error.message);
}

static bool walk_batch(struct rank *rank, struct pack_failure *failure)
{
    struct pack_rows *rows = rank->rows;
    const uint64_t first = rank->work.cursor;
    const uint64_t left = rows->plan->info->count - first;
    struct pack_batch batch = { .samples = rows->samples,
                                .source_count = left < rows->batch_size ? left : rows->batch_size,
                                .load = load,
                                .load_self = rank };
    rank->first = pack_part_find(rank->from, first);
    rank->count = pack_part_find(rank->from, first + batch.source_count) - rank->first;
    if (rank->count > batch.source_count)
        return pack_fail(failure, rank->from->path, 0, "a sample is in it twice");
    batch.count = (uint32_t)rank->count;
    for (uint32_t i = 0; i < batch.count; i++) {
        const struct pack_part_entry *entry = &rank->from->entries[rank->first + i];
        struct pack_sample *sample = &rows->samples[i];
        sample->id = entry->id;
        sample->label = entry->label;
        sample->size = entry->bytes;
        sample->codec = (enum stk_shard_codec)entry->codec;
        sample->bytes = NULL; /* see load() */
    }
    rank->work.cursor += batch.source_count;
    return state_at(rows, first, &batch.before, failure) &&
           state_at(rows, rank->work.cursor, &batch.after, failure) &&
           rows->target->add(rows->into, &batch, failure) &&
           pack_divide_beat(rows->plan->sharing, 0, failure);
}

static bool walk(void *self, const struct pack_part_reader *from, struct pack_failure *failure)
{
    struct rank *rank = self;
    rank->from = from;
    while (rank->work.cursor < from->place.first + from->place.count)
        if (!walk_batch(rank, failure))
            return false;
    return true;
}

static struct pack_shard_point point(void *self)
{
    const struct pack_rows *rows = ((struct rank *)self)->rows;
    return rows->target->point(rows->into);
}

static bool skip(void *self, struct pack_failure *failure)
{
    struct rank *rank = self;
    struct pack_start start;
    if (!rank->rows->target->skip(rank->rows->into, &start, failure))
        return false;
    rank->work.cursor = start.source_done;
    rank->work.finished = start.finished;
    return true;
}

bool pack_rows_divide(struct pack_rows *rows, const struct pack_start *start,
                      struct pack_tally *tally, struct pack_failure *failure)
{
    struct rank rank = { .rows = rows,
                         .work = { .encode = encode, .walk = walk, .point = point, .skip = skip } };
    struct pack_sharing *sharing = rows->plan->sharing;
    rank.work.self = &rank;
    rank.work.cursor = start->source_done;
    const bool good =
        pack_sharing_join(sharing, rows->target->point(rows->into).number, &rows->begin, failure) &&
        pack_divide(sharing, &rank.work, failure) &&
        rows->target->finish(rows->into, tally, failure) &&
        pack_divide_end(sharing, tally->files, failure);
    pack_room_free(&rank.room);
    return good;
}
