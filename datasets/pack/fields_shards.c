/* fields_shards.c - pack samples of several fields into shards of version 2: see fields_target.h.
 *
 * A resumed run checks the finished shards and continues after the last one. Several ranks: as in target_shards.c.
 */
#include "datasets/pack/fields_target.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/pack/lock.h"
#include "datasets/pack/output.h"
#include "datasets/pack/shard_files.h"
#include "datasets/pack/sharing.h"
#include "loader/base/crc32c.h"

enum { ALIGNMENT = 8 };

struct shards {
    const struct pack_fields *fields;
    struct stk_fields_header header; /* what is known of the shard at hand */
    int folder;                      /* locked; -1 = not open */
    struct pack_output output;
    struct pack_room entries;
    struct pack_room labels;
    struct pack_room names;
    uint64_t at;   /* bytes of the shard so far */
    bool filling;  /* it has begun */
    bool ours;     /* this rank writes it */
    bool complete; /* an earlier run had finished, or the other ranks have */
    struct pack_tally tally;
};

/* ---- shards --------------------------------------------------------------------- */

static uint64_t file_bytes_with(const struct shards *shards, uint64_t end, uint64_t count)
{
    struct stk_fields_header header = shards->header;
    uint64_t index_bytes = 0;
    header.count = count;
    header.names_bytes = (uint32_t)shards->names.used;
    (void)stk_fields_index_bytes(&header, &index_bytes);
    return stk_shard_align(end, STK_SHARD_BLOCK_BYTES) + index_bytes;
}

static bool begin_shard(struct shards *shards, struct pack_failure *failure)
{
    char name[PACK_SHARD_NAME_BYTES];
    const struct pack_plan *plan = shards->fields->plan;
    struct stk_fields_header *header = &shards->header;
    header->needs = 0;
    header->count = 0;
    header->longest_bytes = 1;
    shards->entries.used = shards->labels.used = 0;
    shards->at = STK_SHARD_BLOCK_BYTES;
    shards->filling = true;
    shards->ours = true;
    if (plan->sharing != NULL) {
        const int claimed = pack_sharing_claim(plan->sharing, header->number, failure);
        shards->ours = claimed > 0;
        if (claimed <= 0)
            return claimed == 0;
    }
    return pack_output_begin(&shards->output,
                             plan->sharing == NULL ? plan->arguments->target
                                                   : plan->sharing->folder,
                             pack_shard_name(name, header->number), failure) &&
           pack_output_zeros(&shards->output, STK_SHARD_BLOCK_BYTES, failure);
}

/* Write the index, then the header at the start, then rename. */
static bool write_end(struct shards *shards, struct pack_failure *failure)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
    uint8_t fields[STOKER_FIELDS_MAX * STK_SHARD_FIELD_BYTES];
    struct stk_fields_header *header = &shards->header;
    const size_t fields_bytes = header->field_count * (size_t)STK_SHARD_FIELD_BYTES;
    for (uint32_t i = 0; i < header->field_count; i++)
        stk_fields_field_store(fields + (size_t)i * STK_SHARD_FIELD_BYTES, &shards->fields->at[i]);
    const struct pack_span spans[] = { { fields, fields_bytes },
                                       { shards->entries.at, shards->entries.used },
                                       { shards->labels.at, shards->labels.used },
                                       { shards->names.at, shards->names.used } };
    const uint64_t used =
        fields_bytes + shards->entries.used + shards->labels.used + shards->names.used;
    const uint64_t rest = header->file_bytes - header->index_at - used;
    header->index_sum = pack_spans_sum(spans, 4, rest);
    stk_fields_header_store(block, header);
    struct pack_sharing *sharing = shards->fields->plan->sharing;
    return pack_shard_end(&shards->output, header->index_at - shards->at, spans, 4, rest, block,
                          failure) &&
           (sharing == NULL || pack_sharing_written(sharing, failure));
}

static bool end_shard(struct shards *shards, bool last, struct pack_failure *failure)
{
    struct stk_fields_header *header = &shards->header;
    header->names_bytes = (uint32_t)shards->names.used;
    header->alignment = ALIGNMENT;
    header->index_at = stk_shard_align(shards->at, STK_SHARD_BLOCK_BYTES);
    header->file_bytes = file_bytes_with(shards, shards->at, header->count);
    header->flags = last ? STK_SHARD_LAST : 0;
    if (shards->ours && !write_end(shards, failure))
        return false;
    shards->filling = false;
    shards->ours = false;
    shards->tally.bytes += header->file_bytes;
    shards->tally.files++;
    header->first += header->count;
    header->source_first += header->source_count;
    header->source_count = 0;
    header->number++;
    return true;
}

static bool write_piece(struct shards *shards, const struct pack_piece *piece, uint64_t offset,
                        struct pack_failure *failure)
{
    const struct stk_fields_part part = { .offset = offset,
                                          .bytes = (uint32_t)piece->size,
                                          .sum = stk_crc32c(0, piece->bytes, piece->size),
                                          .codec = piece->codec };
    if (!pack_room_for(&shards->entries, STK_SHARD_PART_BYTES))
        return pack_fail(failure, shards->output.path, ENOMEM, "the index");
    if (!pack_output_zeros(&shards->output, offset - shards->at, failure) ||
        !pack_output_write(&shards->output, piece->bytes, piece->size, failure))
        return false;
    stk_fields_part_store(shards->entries.at + shards->entries.used, &part);
    shards->entries.used += STK_SHARD_PART_BYTES;
    return true;
}

static bool add_piece(struct shards *shards, const struct pack_piece *piece,
                      struct pack_failure *failure)
{
    struct stk_fields_header *header = &shards->header;
    const uint64_t offset = stk_shard_align(shards->at, ALIGNMENT);
    if (shards->ours && !write_piece(shards, piece, offset, failure))
        return false;
    shards->at = offset + piece->size;
    header->needs |= 1U << piece->codec;
    if (piece->size > header->longest_bytes)
        header->longest_bytes = (uint32_t)piece->size;
    return true;
}

static bool add_label(struct shards *shards, const struct pack_item *item,
                      struct pack_failure *failure)
{
    uint64_t bits = 0;
    if (!shards->ours)
        return true;
    memcpy(&bits, &item->label, sizeof(item->label));
    if (!pack_room_for(&shards->labels, STK_SHARD_LABEL_BYTES))
        return pack_fail(failure, shards->output.path, ENOMEM, "the labels");
    for (int i = 0; i < STK_SHARD_LABEL_BYTES; i++)
        shards->labels.at[shards->labels.used++] = (uint8_t)(bits >> (8 * i));
    return true;
}

/* Add a good sample, in a new shard if it does not fit. */
static bool add_item(struct shards *shards, const struct pack_item *item,
                     struct pack_failure *failure)
{
    struct stk_fields_header *header = &shards->header;
    uint64_t end = shards->filling ? shards->at : STK_SHARD_BLOCK_BYTES;
    for (uint32_t p = 0; p < header->part_count; p++)
        end = stk_shard_align(end, ALIGNMENT) + item->pieces[p].size;
    if (shards->filling && header->count > 0 &&
        file_bytes_with(shards, end, header->count + 1) >
            shards->fields->plan->arguments->shard_bytes &&
        !end_shard(shards, false, failure))
        return false;
    if (!shards->filling && !begin_shard(shards, failure))
        return false;
    if (shards->ours && item->load != NULL && !item->load(item->load_self, failure))
        return false;
    for (uint32_t p = 0; p < header->part_count; p++)
        if (!add_piece(shards, &item->pieces[p], failure))
            return false;
    header->count++;
    shards->tally.samples++;
    return add_label(shards, item, failure);
}

/* ---- an earlier run ------------------------------------------------------------- */

/* Skip finished shards of the same packing. */
static bool skip_finished(struct shards *shards, struct pack_fields_start *start,
                          struct pack_failure *failure)
{
    struct stk_fields_header *due = &shards->header;
    while (!start->finished) {
        char name[PACK_SHARD_NAME_BYTES];
        uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
        struct stk_fields_header found = { 0 };
        struct stat status = { 0 };
        const char *what = "it cannot be read";
        const int fd =
            openat(shards->folder, pack_shard_name(name, due->number), O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return true;
        if (fd >= 0 && fstat(fd, &status) == 0 && pack_read_at(fd, block, sizeof(block), 0) &&
            stk_fields_header_load(&found, block, (uint64_t)status.st_size, &what) == STOKER_OK)
            what = found.set_id != due->set_id || found.number != due->number ||
                           found.first != due->first || found.source_first != due->source_first
                       ? "it is of another packing"
                   : pack_index_is_whole(fd, found.index_at, found.file_bytes, found.index_sum)
                       ? NULL
                       : "its index is damaged";
        if (fd >= 0)
            close(fd);
        if (what != NULL)
            return pack_fail(failure, name, 0, "%s; remove it, or pack elsewhere", what);
        due->number++;
        due->first += found.count;
        due->source_first += found.source_count;
        shards->tally.samples += found.count;
        shards->tally.bytes += found.file_bytes;
        shards->tally.files++;
        start->finished = (found.flags & STK_SHARD_LAST) != 0;
    }
    return true;
}

/* ---- open and finish ------------------------------------------------------------ */

static void close_shards(void *self)
{
    struct shards *shards = self;
    if (shards == NULL)
        return;
    pack_output_drop(&shards->output);
    pack_room_free(&shards->entries);
    pack_room_free(&shards->labels);
    pack_room_free(&shards->names);
    if (shards->folder >= 0)
        close(shards->folder);
    free(shards);
}

static bool open_shards(void **self, const struct pack_fields *fields,
                        struct pack_fields_start *start, struct pack_failure *failure)
{
    const char *target = fields->plan->arguments->target;
    struct shards *shards = calloc(1, sizeof(*shards));
    if (shards == NULL)
        return pack_fail(failure, target, ENOMEM, "opening");
    *self = shards;
    shards->fields = fields;
    shards->header = (struct stk_fields_header){ .set_id = fields->plan->set_id,
                                                 .alignment = ALIGNMENT,
                                                 .field_count = fields->count,
                                                 .part_count = fields->part_count };
    shards->folder = -1;
    if (!pack_class_names(fields->plan, &shards->names))
        return pack_fail(failure, target, ENOMEM, "the classes");
    shards->folder = pack_lock_folder(target, fields->plan->sharing != NULL, failure);
    if (shards->folder < 0 || !skip_finished(shards, start, failure) ||
        !pack_shards_alone(target, shards->header.number, failure))
        return false;
    shards->tally.kept_samples = shards->tally.samples;
    start->source_done = shards->header.source_first;
    shards->complete = start->finished;
    return true;
}

static bool add(void *self, const struct pack_item *item, struct pack_failure *failure)
{
    struct shards *shards = self;
    if (!item->bad && !add_item(shards, item, failure))
        return false;
    shards->header.source_count++;
    return true;
}

static bool finish(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct shards *shards = self;
    if (!shards->filling && !shards->complete)
        return pack_fail(failure, shards->fields->plan->arguments->target, 0,
                         "all samples behind the shards that are there are bad");
    if (shards->filling && !end_shard(shards, true, failure))
        return false;
    *tally = shards->tally;
    return true;
}

/* ---- several ranks -------------------------------------------------------------- */

static struct pack_shard_point point(const void *self)
{
    const struct shards *shards = self;
    return (struct pack_shard_point){ .number = shards->header.number,
                                      .source_first = shards->header.source_first,
                                      .ours = shards->ours };
}

/* Number and firsts of the header are still those of the shard's beginning. */
static bool skip(void *self, struct pack_fields_start *start, struct pack_failure *failure)
{
    struct shards *shards = self;
    assert(!shards->ours);
    if (shards->filling)
        shards->tally.samples -= shards->header.count;
    shards->filling = false;
    shards->header.source_count = 0;
    *start = (struct pack_fields_start){ .finished = false };
    if (!skip_finished(shards, start, failure))
        return false;
    start->source_done = shards->header.source_first;
    shards->complete = start->finished;
    return true;
}

const struct pack_fields_target pack_fields_shards = { .open = open_shards,
                                                       .add = add,
                                                       .finish = finish,
                                                       .close = close_shards,
                                                       .point = point,
                                                       .skip = skip };
