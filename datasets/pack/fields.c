/* fields.c - see fields.h.
 *
 *   ids ─▶ a team of threads: read, keep or encode each part ─▶ target, in the order of ids
 */
#include "datasets/pack/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/pack/divide.h"
#include "datasets/pack/fields_members.h"
#include "datasets/pack/fields_ranks.h"
#include "datasets/pack/fields_target.h"
#include "datasets/pack/pixels.h"
#include "datasets/pack/progress.h"
#include "loader/base/thread_team.h"

enum { TOGETHER = 64 };

struct packing {
    struct pack_fields fields;
    struct pack_item *items; /* [TOGETHER] */
    uint32_t item_count;
    atomic_uint next;
    struct stk_thread_team *team;
    const struct pack_fields_target *target;
    void *into; /* the target's state; NULL = not open */
};

/* ---- what is packed ------------------------------------------------------------- */

bool pack_fields_needed(const struct pack_plan *plan)
{
    const stoker_field_info *first = stoker_dataset_field(plan->source, 0);
    const uint32_t count = plan->info->field_count;
    const bool two = count == 2 && pack_is_label(stoker_dataset_field(plan->source, 1));
    return first->varies || first->kind == STOKER_FIELD_MASK || (count > 1 && !two) ||
           (first->sizes_differ && plan->arguments->codec == PACK_KEEP);
}

/* Fields as they will be stored: one part each, but the label. */
static void describe_fields(struct pack_fields *fields, const struct pack_plan *plan)
{
    *fields = (struct pack_fields){ .plan = plan, .count = plan->info->field_count };
    for (uint32_t i = 0; i < fields->count; i++) {
        const stoker_field_info *from = stoker_dataset_field(plan->source, i);
        struct stk_fields_field *field = &fields->at[i];
        *field = (struct stk_fields_field){ .kind = from->kind,
                                            .dtype = from->dtype,
                                            .rank = from->rank,
                                            .varies = from->varies,
                                            .sizes_differ = from->sizes_differ,
                                            .class_count = from->class_count,
                                            .part = pack_is_label(from) ? STOKER_NO_PART
                                                                        : fields->part_count++ };
        memcpy(field->shape, from->shape, from->rank * sizeof(field->shape[0]));
        (void)snprintf(field->name, sizeof(field->name), "%s", from->name);
    }
}

/* Returns NULL, or why the codec is not available. */
static const char *unsuitable_codec(const struct pack_arguments *arguments)
{
    const enum pack_codec codec = arguments->codec;
    if (arguments->form == PACK_SHARDS && (codec == PACK_PNG || codec == PACK_JPEG))
        return "fields are packed with --codec keep, raw, lz4 or zstd";
    if (codec == PACK_LZ4 && !pack_lz4_present())
        return "this stoker-pack was built without liblz4";
    if (codec == PACK_ZSTD && !pack_zstd_present())
        return "this stoker-pack was built without libzstd";
    return NULL;
}

static const char *unsuitable(const struct pack_fields *fields)
{
    const struct pack_arguments *arguments = fields->plan->arguments;
    const char *why = unsuitable_codec(arguments);
    for (uint32_t i = 0; why == NULL && i < fields->count; i++) {
        if (stk_fields_bytes(&fields->at[i]) == 0)
            return "a field has more than 1 GiB";
        if (fields->at[i].sizes_differ && arguments->codec != PACK_KEEP)
            return "images of several sizes: --codec keep stores them as they are";
    }
    if (why == NULL && fields->part_count == 0)
        return "a label alone";
    return why == NULL && arguments->form != PACK_SHARDS ? pack_members_unsuitable(fields) : why;
}

/* ---- all of it ------------------------------------------------------------------ */

static void read_items(void *argument, uint32_t thread)
{
    struct packing *packing = argument;
    (void)thread;
    for (;;) {
        const uint32_t at = atomic_fetch_add_explicit(&packing->next, 1, memory_order_relaxed);
        if (at >= packing->item_count)
            return;
        pack_item_read(&packing->fields, &packing->items[at]);
    }
}

static bool take_items(struct packing *packing)
{
    packing->items = calloc(TOGETHER, sizeof(*packing->items));
    for (uint32_t i = 0; packing->items != NULL && i < TOGETHER; i++)
        if (!pack_item_make(&packing->items[i], &packing->fields))
            return false;
    return packing->items != NULL;
}

static void close_packing(struct packing *packing)
{
    for (uint32_t i = 0; packing->items != NULL && i < TOGETHER; i++)
        pack_item_free(&packing->items[i]);
    free(packing->items);
    stk_thread_team_destroy(packing->team);
    packing->target->close(packing->into);
}

/* Read and encode samples first .. first + count - 1, at most TOGETHER. */
static bool make_items(struct packing *packing, uint64_t first, uint64_t count,
                       struct pack_failure *failure)
{
    packing->item_count = count < TOGETHER ? (uint32_t)count : TOGETHER;
    for (uint32_t i = 0; i < packing->item_count; i++)
        packing->items[i].id = first + i;
    atomic_store_explicit(&packing->next, 0, memory_order_relaxed); /* published by the run */
    stk_thread_team_run(packing->team, read_items, packing);
    for (uint32_t i = 0; i < packing->item_count; i++) {
        const struct pack_item *item = &packing->items[i];
        if (item->failed[0] != '\0')
            return pack_fail(failure, packing->fields.plan->arguments->source, 0,
                             "sample %" PRIu64 ": %s", item->id, item->failed);
        if (item->bad)
            (void)fprintf(stderr, "stoker-pack: left out: %s\n", item->error.message);
    }
    return true;
}

static bool add_items(struct packing *packing, struct pack_failure *failure)
{
    for (uint32_t i = 0; i < packing->item_count; i++)
        if (!packing->target->add(packing->into, &packing->items[i], failure))
            return false;
    return true;
}

static bool pack_samples(struct packing *packing, uint64_t first, struct pack_failure *failure)
{
    const struct pack_plan *plan = packing->fields.plan;
    const uint64_t count = plan->info->count;
    struct pack_progress progress =
        pack_progress_begin("packed", first, count, plan->arguments->quiet);
    bool good = true;
    for (uint64_t id = first; good && id < count; id += packing->item_count) {
        good = make_items(packing, id, count - id, failure) && add_items(packing, failure);
        pack_progress_show(&progress, id + packing->item_count);
    }
    cli_progress_line_wipe(&progress.line);
    return good;
}

/* One rank's part of the samples: see fields_ranks.h. */
static bool encode_part(void *self, const struct pack_part_place *place, struct pack_part *to,
                        struct pack_failure *failure)
{
    struct packing *packing = self;
    const uint64_t end = place->first + place->count;
    for (uint64_t id = place->first; id < end; id += packing->item_count) {
        if (!make_items(packing, id, end - id, failure))
            return false;
        for (uint32_t i = 0; i < packing->item_count; i++)
            if (!pack_fields_keep(&packing->fields, &packing->items[i], to, failure))
                return false;
        if (!pack_divide_beat(packing->fields.plan->sharing, packing->item_count, failure))
            return false;
    }
    return true;
}

static bool pack_together(struct packing *packing, const struct pack_fields_start *start,
                          struct pack_tally *tally, struct pack_failure *failure)
{
    struct pack_sharing *sharing = packing->fields.plan->sharing;
    pack_sharing_begin_progress(sharing, start->source_done);
    struct pack_fields_walk walk = { .fields = &packing->fields,
                                     .target = packing->target,
                                     .into = packing->into,
                                     .encode = encode_part,
                                     .encode_self = packing };
    const bool good = pack_fields_divide(&walk, start, tally, failure);
    cli_progress_line_wipe(&sharing->progress.line);
    return good;
}

static bool pack_all(struct packing *packing, uint32_t threads, struct pack_tally *tally,
                     struct pack_failure *failure)
{
    const struct pack_plan *plan = packing->fields.plan;
    const char *why = unsuitable(&packing->fields);
    struct pack_fields_start start = { 0 };
    if (why != NULL)
        return pack_fail(failure, plan->arguments->source, 0, "%s", why);
    if (!take_items(packing))
        return pack_fail(failure, plan->arguments->target, ENOMEM, "the samples");
    if (!packing->target->open(&packing->into, &packing->fields, &start, failure))
        return false;
    if (!start.finished) {
        if (stk_thread_team_create(&packing->team, "stoker-pack",
                                   threads > STK_THREAD_TEAM_MAX ? STK_THREAD_TEAM_MAX : threads) !=
            STOKER_OK)
            return pack_fail(failure, plan->arguments->target, 0, "a thread could not be started");
        if (plan->sharing != NULL)
            return pack_together(packing, &start, tally, failure);
        if (!pack_samples(packing, start.source_done, failure))
            return false;
    }
    return packing->target->finish(packing->into, tally, failure);
}

static const struct pack_fields_target *target_of(enum pack_form form)
{
    return form == PACK_SHARDS   ? &pack_fields_shards
           : form == PACK_FOLDER ? &pack_fields_folder
                                 : &pack_fields_tar;
}

bool pack_fields_run(const struct pack_plan *plan, uint32_t threads, struct pack_tally *tally,
                     struct pack_failure *failure)
{
    struct packing packing = { .target = target_of(plan->arguments->form) };
    describe_fields(&packing.fields, plan);
    const bool good = pack_all(&packing, threads, tally, failure);
    close_packing(&packing);
    return good;
}

bool pack_fields_spec(const struct pack_plan *plan, char spec[PACK_SPEC_BYTES])
{
    struct pack_fields fields;
    describe_fields(&fields, plan);
    if (plan->arguments->form == PACK_SHARDS)
        return snprintf(spec, PACK_SPEC_BYTES, "shards:%s", plan->arguments->target) <
               PACK_SPEC_BYTES;
    return pack_members_spec(&fields, spec);
}
