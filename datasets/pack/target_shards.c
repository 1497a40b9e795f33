/* target_shards.c - pack into shards.
 *
 * A shard ends at the end of a batch, and its header keeps the loader's state at that point. A resumed
 * run checks the finished shards and continues after the last one.
 *
 * If several ranks pack, each of them adds all batches, and so finds the same ends, but writes only the shards that it
 * claims; of the others it counts the bytes.
 */
#include "datasets/pack/lock.h"
#include "datasets/pack/output.h"
#include "datasets/pack/shard_files.h"
#include "datasets/pack/sharing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/crc32c.h"

static_assert(sizeof(stoker_state) == STK_SHARD_RESUME_BYTES, "a state fits in a header");

struct shards {
    const struct pack_plan *plan;
    int folder; /* locked; -1 = not open */
    struct pack_output output;
    struct stk_shard_header header; /* the current shard's */
    struct pack_room entries;
    struct pack_room names;
    uint64_t at;  /* bytes of it so far */
    bool filling; /* it has begun */
    bool ours;    /* this rank writes it */
    struct pack_tally tally;
    stoker_state state; /* after the last batch added */
};

/* ---- existing shards ------------------------------------------------------------ */

/* Returns NULL, or what is wrong with a shard that should have header.number in this packing. */
static const char *look_at(struct shards *shards, int fd, struct stk_shard_header *found)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
    struct stat status;
    const char *what = NULL;
    const struct stk_shard_header *due = &shards->header;
    if (fstat(fd, &status) != 0 || status.st_size < STK_SHARD_BLOCK_BYTES ||
        !pack_read_at(fd, block, sizeof(block), 0))
        return "it cannot be read";
    if (stk_shard_header_load(found, block, (uint64_t)status.st_size, &what) != STOKER_OK)
        return what;
    if (found->set_id != due->set_id || found->number != due->number ||
        found->first != due->first || found->source_first != due->source_first)
        return "it is of another packing";
    return pack_index_is_whole(fd, found->index_at, found->file_bytes, found->index_sum)
               ? NULL
               : "its index is damaged";
}

/* Skip finished shards. */
static bool skip_finished(struct shards *shards, struct pack_start *start,
                          struct pack_failure *failure)
{
    struct stk_shard_header *due = &shards->header;
    while (!start->finished) {
        char name[PACK_SHARD_NAME_BYTES];
        struct stk_shard_header found = { 0 };
        const int fd =
            openat(shards->folder, pack_shard_name(name, due->number), O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return true;
        const char *what = fd < 0 ? strerror(errno) : look_at(shards, fd, &found);
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
        start->source_done = due->source_first;
        start->finished = (found.flags & STK_SHARD_LAST) != 0;
        memcpy(&start->state, found.resume, sizeof(start->state));
    }
    return true;
}

/* ---- open ----------------------------------------------------------------------- */

static void begin_header(struct shards *shards)
{
    const struct pack_plan *plan = shards->plan;
    const uint64_t row_bytes = stoker_dataset_row_bytes(plan->source);
    const bool rows = plan->arguments->codec == PACK_RAW ||
                      (plan->arguments->codec == PACK_KEEP && !plan->info->is_image);
    shards->header = (struct stk_shard_header){
        .alignment = rows ? stk_shard_alignment(row_bytes) : 8,
        .dtype = plan->info->dtype,
        .label_dtype = plan->info->label_dtype,
        .rank = plan->info->rank,
        .is_image = plan->info->is_image,
        .class_count = plan->info->class_count,
        .set_id = plan->set_id,
        .names_bytes = (uint32_t)shards->names.used,
    };
    memcpy(shards->header.shape, plan->info->shape,
           plan->info->rank * sizeof(shards->header.shape[0]));
    const char *name = stoker_dataset_field(plan->source, 0)->name;
    if (strcmp(name, plan->info->is_image ? "image" : "row") != 0)
        (void)snprintf(shards->header.name, sizeof(shards->header.name), "%s", name);
}

static void close_shards(void *self)
{
    struct shards *shards = self;
    pack_output_drop(&shards->output);
    pack_room_free(&shards->entries);
    pack_room_free(&shards->names);
    if (shards->folder >= 0)
        close(shards->folder);
    free(shards);
}

static bool open_shards(void **self, const struct pack_plan *plan, struct pack_start *start,
                        struct pack_failure *failure)
{
    const char *path = plan->arguments->target;
    struct shards *shards = calloc(1, sizeof(*shards));
    if (shards == NULL)
        return pack_fail(failure, path, ENOMEM, "opening");
    shards->plan = plan;
    shards->folder = -1;
    bool opened =
        pack_class_names(plan, &shards->names) || pack_fail(failure, path, ENOMEM, "the classes");
    begin_header(shards);
    if (opened && (stk_shard_row_bytes(&shards->header) == 0 ||
                   plan->info->class_count > STK_SHARD_CLASSES_MAX))
        opened = pack_fail(failure, path, 0, "a row of over 1 GiB, or more than 2^20 classes");
    if (opened) {
        shards->folder = pack_lock_folder(path, plan->sharing != NULL, failure);
        opened = shards->folder >= 0 && skip_finished(shards, start, failure) &&
                 pack_shards_alone(path, shards->header.number, failure);
    }
    if (!opened) {
        close_shards(shards);
        return false;
    }
    shards->tally.kept_samples = shards->tally.samples;
    *self = shards;
    return true;
}

/* ---- one shard ------------------------------------------------------------------ */

/* Returns the size of the file for this end of the records and number of index entries. */
static uint64_t file_bytes_with(const struct shards *shards, uint64_t end, uint64_t count)
{
    return stk_shard_align(end, STK_SHARD_BLOCK_BYTES) +
           stk_shard_index_bytes(count, shards->header.names_bytes);
}

static bool begin_shard(struct shards *shards, struct pack_failure *failure)
{
    char name[PACK_SHARD_NAME_BYTES];
    struct pack_sharing *sharing = shards->plan->sharing;
    struct stk_shard_header *header = &shards->header;
    header->needs = 0;
    header->flags = 0;
    header->count = 0;
    header->longest_bytes = 0;
    header->source_count = 0;
    shards->entries.used = 0;
    shards->at = STK_SHARD_BLOCK_BYTES;
    shards->filling = true;
    shards->ours = true;
    if (sharing != NULL) {
        const int claimed = pack_sharing_claim(sharing, header->number, failure);
        shards->ours = claimed > 0;
        if (claimed <= 0)
            return claimed == 0;
    }
    if (!pack_output_begin(&shards->output,
                           sharing == NULL ? shards->plan->arguments->target : sharing->folder,
                           pack_shard_name(name, header->number), failure))
        return false;
    pack_output_widen(&shards->output);
    return pack_output_zeros(&shards->output, STK_SHARD_BLOCK_BYTES, failure);
}

/* Write the index, then the header at the start, then rename. */
static bool write_end(struct shards *shards, struct pack_failure *failure)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
    struct stk_shard_header *header = &shards->header;
    const struct pack_span spans[] = { { shards->entries.at, shards->entries.used },
                                       { shards->names.at, shards->names.used } };
    const uint64_t used = shards->entries.used + shards->names.used;
    const uint64_t rest = header->file_bytes - header->index_at - used;
    header->index_sum = pack_spans_sum(spans, 2, rest);
    memcpy(header->resume, &shards->state, sizeof(shards->state));
    stk_shard_header_store(block, header);
    return pack_shard_end(&shards->output, header->index_at - shards->at, spans, 2, rest, block,
                          failure) &&
           (shards->plan->sharing == NULL || pack_sharing_written(shards->plan->sharing, failure));
}

static bool end_shard(struct shards *shards, bool last, struct pack_failure *failure)
{
    struct stk_shard_header *header = &shards->header;
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
    header->number++;
    return true;
}

/* `offset`: where the record begins. */
static bool write_record(struct shards *shards, const struct pack_sample *sample, uint64_t offset,
                         struct pack_failure *failure)
{
    const struct stk_shard_entry entry = { .offset = offset,
                                           .bytes = (uint32_t)sample->size,
                                           .sum = stk_crc32c(0, sample->bytes, sample->size),
                                           .codec = sample->codec,
                                           .label = sample->label };
    if (!pack_room_for(&shards->entries, STK_SHARD_ENTRY_BYTES))
        return pack_fail(failure, shards->output.path, ENOMEM, "the index");
    if (!pack_output_zeros(&shards->output, offset - shards->at, failure) ||
        !pack_output_write(&shards->output, sample->bytes, sample->size, failure))
        return false;
    stk_shard_entry_store(shards->entries.at + shards->entries.used, &entry,
                          shards->header.label_dtype);
    shards->entries.used += STK_SHARD_ENTRY_BYTES;
    return true;
}

static bool add_record(struct shards *shards, const struct pack_sample *sample,
                       struct pack_failure *failure)
{
    struct stk_shard_header *header = &shards->header;
    const uint64_t offset = stk_shard_align(shards->at, header->alignment);
    if (shards->ours && !write_record(shards, sample, offset, failure))
        return false;
    shards->at = offset + sample->size;
    header->needs |= 1U << sample->codec;
    header->count++;
    shards->tally.samples++;
    if (sample->size > header->longest_bytes)
        header->longest_bytes = (uint32_t)sample->size;
    return true;
}

/* ---- batches -------------------------------------------------------------------- */

/* Returns true if a batch fits into a shard whose records end at `at`. */
static bool fits(const struct shards *shards, const struct pack_batch *batch, uint64_t at,
                 uint64_t count)
{
    for (uint32_t i = 0; i < batch->count; i++)
        at = stk_shard_align(at, shards->header.alignment) + batch->samples[i].size;
    return file_bytes_with(shards, at, count + batch->count) <=
           shards->plan->arguments->shard_bytes;
}

static bool add_batch(void *self, const struct pack_batch *batch, struct pack_failure *failure)
{
    struct shards *shards = self;
    struct stk_shard_header *header = &shards->header;
    if (shards->filling && !fits(shards, batch, shards->at, header->count)) {
        shards->state = batch->before;
        if (!end_shard(shards, false, failure))
            return false;
    }
    if (!shards->filling) {
        if (!fits(shards, batch, STK_SHARD_BLOCK_BYTES, 0))
            return pack_fail(failure, shards->plan->arguments->target, 0,
                             "%u samples do not fit in a shard: raise --shard-bytes", batch->count);
        if (!begin_shard(shards, failure))
            return false;
    }
    header->source_count += batch->source_count;
    shards->state = batch->after;
    if (shards->ours && batch->load != NULL && !batch->load(batch->load_self, failure))
        return false;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!add_record(shards, &batch->samples[i], failure))
            return false;
    }
    return true;
}

static bool finish(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct shards *shards = self;
    if (shards->filling && shards->header.count == 0)
        return pack_fail(failure, shards->plan->arguments->target, 0,
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
static bool skip(void *self, struct pack_start *start, struct pack_failure *failure)
{
    struct shards *shards = self;
    assert(!shards->ours);
    if (shards->filling)
        shards->tally.samples -= shards->header.count;
    shards->filling = false;
    *start = (struct pack_start){ .source_done = shards->header.source_first };
    return skip_finished(shards, start, failure);
}

const struct pack_target pack_target_shards = { .open = open_shards,
                                                .add = add_batch,
                                                .finish = finish,
                                                .close = close_shards,
                                                .point = point,
                                                .skip = skip };
