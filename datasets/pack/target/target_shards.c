/* target_shards.c - pack into shards.
 *
 * Shard n holds samples n * shard_samples to (n + 1) * shard_samples - 1 of the source, so its
 * bytes depend on nothing else: each rank writes its own shards, and a run that continues another
 * keeps the complete ones.
 *
 * With --block a sample that does not fit into the current block begins another one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/pack/encode/pixels.h"
#include "datasets/pack/item.h"
#include "datasets/pack/output.h"
#include "loader/base/crc32c/crc32c.h"

enum { NAME_BYTES = 32, COPY_BYTES = 64 << 10 };

struct shards {
    const struct pack_plan *plan;
    struct stk_shard_header header; /* the current shard's */
    struct pack_output output;      /* the current shard */
    uint64_t at;                    /* bytes of the current shard so far */
    struct pack_room block;         /* parts of the current block, if --block is given */
    struct pack_room packed;        /* the block, compressed */
    struct pack_room blocks;        /* entries of blocks */
    struct pack_room entries;
    struct pack_room words;
    struct pack_room names; /* class names, the same in all shards */
    uint64_t next;          /* number of this rank's next shard */
    struct pack_tally tally;
};

static const char *name_of(char name[NAME_BYTES], uint64_t number)
{
    (void)snprintf(name, NAME_BYTES, "shard-%06u.stk", (unsigned)number);
    return name;
}

/* ---- what exists already -------------------------------------------------------- */

/* Foreign shards would be read along with ours. */
static bool is_alone(const struct pack_plan *plan, struct pack_failure *failure)
{
    const char *folder = plan->arguments->target;
    DIR *stream = opendir(folder);
    bool alone = true;
    if (stream == NULL)
        return pack_fail(failure, folder, errno, "listing");
    const struct dirent *entry;
    while (alone && (entry = readdir(stream)) != NULL) {
        char due[NAME_BYTES];
        unsigned number = 0;
        const size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || length < 4 ||
            strcmp(entry->d_name + length - 4, ".stk") != 0)
            continue;
        alone = (sscanf(entry->d_name, "shard-%6u", &number) == 1 && number < plan->shard_count &&
                 strcmp(name_of(due, number), entry->d_name) == 0) ||
                pack_fail(failure, entry->d_name, 0,
                          "not of this packing; remove it, or pack elsewhere");
    }
    closedir(stream);
    return alone;
}

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(fd, (uint8_t *)to + done, size - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got < 0 ? 0 : (size_t)got;
    }
    return true;
}

static bool index_is_whole(int fd, const struct stk_shard_header *header)
{
    uint8_t bytes[COPY_BYTES];
    uint32_t sum = 0;
    for (uint64_t at = header->index_at; at < header->file_bytes;) {
        const uint64_t left = header->file_bytes - at;
        const size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
        if (!read_at(fd, bytes, size, at))
            return false;
        sum = stk_crc32c(sum, bytes, size);
        at += size;
    }
    return sum == header->index_sum;
}

/* Returns NULL, or why the file is not the shard that belongs there. */
static const char *wrong_shard(const struct shards *shards, int fd, struct stk_shard_header *found)
{
    uint8_t block[STK_SHARD_PAGE_BYTES];
    struct stat status;
    const char *what = "it cannot be read";
    const struct stk_shard_header *due = &shards->header;
    if (fstat(fd, &status) != 0 || !read_at(fd, block, sizeof(block), 0) ||
        stk_shard_header_load(found, block, (uint64_t)status.st_size, &what) != STOKER_OK)
        return what;
    if (found->set_id != due->set_id || found->number != due->number)
        return "it is of another packing";
    return index_is_whole(fd, found) ? NULL : "its index is damaged";
}

/* Keep the shard of header.number if an earlier run has completed it. */
static bool keep_shard(struct shards *shards, bool *kept, struct pack_failure *failure)
{
    char name[NAME_BYTES];
    char path[PACK_PATH_BYTES + NAME_BYTES];
    struct stk_shard_header found = { 0 };
    (void)snprintf(path, sizeof(path), "%s/%s", shards->plan->arguments->target,
                   name_of(name, shards->header.number));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *kept = false;
    if (fd < 0)
        return errno == ENOENT || pack_fail(failure, path, errno, "opening");
    const char *what = wrong_shard(shards, fd, &found);
    close(fd);
    if (what != NULL)
        return pack_fail(failure, name, 0, "%s; remove it, or pack elsewhere", what);
    *kept = true;
    shards->tally.kept_samples += found.count;
    shards->tally.samples += found.count;
    shards->tally.bad_samples += found.source_count - found.count;
    shards->tally.bytes += found.file_bytes;
    shards->tally.files++;
    return true;
}

/* ---- one shard ------------------------------------------------------------------ */

static bool begin_shard(struct shards *shards, struct pack_failure *failure)
{
    char name[NAME_BYTES];
    shards->header.needs = shards->plan->arguments->block_bytes > 0 ? STK_SHARD_NEEDS_BLOCKS : 0;
    shards->header.count = 0;
    shards->header.longest_bytes = 0;
    shards->header.block_count = shards->header.block_bytes = 0;
    shards->entries.used = shards->words.used = 0;
    shards->block.used = shards->blocks.used = 0;
    shards->at = STK_SHARD_PAGE_BYTES;
    if (!pack_output_begin(&shards->output, shards->plan->arguments->target,
                           name_of(name, shards->header.number), failure))
        return false;
    pack_output_widen(&shards->output);
    return pack_output_zeros(&shards->output, STK_SHARD_PAGE_BYTES, failure);
}

/* Compress the current block if that makes it smaller. */
static bool pack_block(struct shards *shards, uint32_t *codec, struct pack_failure *failure)
{
    const struct pack_arguments *arguments = shards->plan->arguments;
    const struct pack_room *block = &shards->block;
    const bool lz4 = arguments->codec == PACK_LZ4;
    shards->packed.used = 0;
    const char *why = lz4 ? pack_lz4(block->at, block->used, arguments->level, &shards->packed)
                          : pack_zstd(block->at, block->used, arguments->level, &shards->packed);
    *codec = shards->packed.used >= block->used ? STK_SHARD_RAW
             : lz4                              ? STK_SHARD_LZ4
                                                : STK_SHARD_ZSTD;
    return why == NULL || pack_fail(failure, shards->output.path, 0, "a block: %s", why);
}

/* Write the current block and its entry; nothing if it is empty. */
static bool end_block(struct shards *shards, struct pack_failure *failure)
{
    struct stk_shard_header *header = &shards->header;
    uint8_t entry[STK_SHARD_BLOCK_BYTES];
    uint32_t codec = STK_SHARD_RAW;
    if (shards->block.used == 0)
        return true;
    if (!pack_block(shards, &codec, failure))
        return false;
    const struct pack_room *stored = codec == STK_SHARD_RAW ? &shards->block : &shards->packed;
    const struct stk_shard_block block = { .offset = shards->at,
                                           .stored_bytes = (uint32_t)stored->used,
                                           .bytes = (uint32_t)shards->block.used,
                                           .sum =
                                               stk_crc32c(0, shards->block.at, shards->block.used),
                                           .codec = codec };
    stk_shard_block_store(entry, &block);
    if (!pack_room_add(&shards->blocks, entry, sizeof(entry)))
        return pack_fail(failure, shards->output.path, ENOMEM, "the index");
    if (!pack_output_write(&shards->output, stored->at, stored->used, failure))
        return false;
    shards->at += stored->used;
    header->needs |= UINT64_C(1) << codec;
    header->block_count++;
    header->block_bytes += shards->block.used;
    shards->block.used = 0;
    return true;
}

/* Begin another block if the sample does not fit into the current one. */
static bool begin_sample(struct shards *shards, const struct pack_item *item,
                         struct pack_failure *failure)
{
    const uint64_t block_bytes = shards->plan->arguments->block_bytes;
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < shards->header.part_count; p++)
        bytes += item->pieces[p].size;
    if (block_bytes == 0)
        return true;
    if (bytes > STK_SHARD_VALUE_BYTES_MAX)
        return pack_fail(failure, shards->output.path, 0,
                         "sample %llu is too long for a block: %llu bytes",
                         (unsigned long long)item->id, (unsigned long long)bytes);
    return shards->block.used + bytes <= block_bytes || end_block(shards, failure);
}

/* Write the index, then the header at the start; sync and rename. */
static bool end_shard(struct shards *shards, struct pack_failure *failure)
{
    static const uint8_t zeros[STK_SHARD_PAGE_BYTES];
    uint8_t block[STK_SHARD_PAGE_BYTES];
    uint8_t fields[STOKER_FIELDS_MAX * STK_SHARD_FIELD_BYTES];
    struct stk_shard_header *header = &shards->header;
    uint64_t index_bytes = 0;
    if (!end_block(shards, failure))
        return false;
    for (uint32_t i = 0; i < header->field_count; i++)
        stk_shard_field_store(fields + (size_t)i * STK_SHARD_FIELD_BYTES, &shards->plan->fields[i]);
    header->index_at = stk_shard_align(shards->at, STK_SHARD_PAGE_BYTES);
    (void)stk_shard_index_bytes(header, &index_bytes);
    header->file_bytes = header->index_at + index_bytes;
    const uint64_t used = stk_shard_names_at(header) + header->names_bytes;
    const struct {
        const void *at;
        size_t bytes;
    } spans[] = {
        { fields, (size_t)stk_shard_blocks_at(header) }, { shards->blocks.at, shards->blocks.used },
        { shards->entries.at, shards->entries.used },    { shards->words.at, shards->words.used },
        { shards->names.at, shards->names.used },        { zeros, (size_t)(index_bytes - used) }
    };
    if (!pack_output_zeros(&shards->output, header->index_at - shards->at, failure))
        return false;
    header->index_sum = 0;
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        header->index_sum = stk_crc32c(header->index_sum, spans[i].at, spans[i].bytes);
        if (!pack_output_write(&shards->output, spans[i].at, spans[i].bytes, failure))
            return false;
    }
    stk_shard_header_store(block, header);
    shards->tally.samples += header->count;
    shards->tally.bad_samples += header->source_count - header->count;
    shards->tally.bytes += header->file_bytes;
    shards->tally.files++;
    return pack_output_rewind(&shards->output, failure) &&
           pack_output_write(&shards->output, block, sizeof(block), failure) &&
           pack_output_commit(&shards->output, true, failure);
}

/* Append a part to the file, or to the current block. */
static bool write_piece(struct shards *shards, const struct pack_piece *piece, uint64_t offset,
                        struct pack_failure *failure)
{
    if (shards->plan->arguments->block_bytes > 0)
        return piece->size == 0 || pack_room_add(&shards->block, piece->bytes, piece->size) ||
               pack_fail(failure, shards->output.path, ENOMEM, "a block");
    if (!pack_output_zeros(&shards->output, offset - shards->at, failure) ||
        !pack_output_write(&shards->output, piece->bytes, piece->size, failure))
        return false;
    shards->at = offset + piece->size;
    return true;
}

static bool add_piece(struct shards *shards, const struct pack_piece *piece,
                      struct pack_failure *failure)
{
    struct stk_shard_header *header = &shards->header;
    uint8_t entry[STK_SHARD_PART_BYTES];
    const uint64_t at = shards->plan->arguments->block_bytes > 0
                            ? header->block_bytes + shards->block.used
                            : stk_shard_align(shards->at, header->alignment);
    const struct stk_shard_part part = { .offset = at,
                                         .bytes = piece->size,
                                         .sum = stk_crc32c(0, piece->bytes, piece->size),
                                         .codec = piece->codec };
    stk_shard_part_store(entry, &part);
    if (!pack_room_add(&shards->entries, entry, sizeof(entry)))
        return pack_fail(failure, shards->output.path, ENOMEM, "the index");
    if (!write_piece(shards, piece, at, failure))
        return false;
    header->needs |= UINT64_C(1) << piece->codec;
    if (piece->size > header->longest_bytes)
        header->longest_bytes = piece->size;
    return true;
}

/* A bad sample leaves no trace but in source_count. */
static bool add_to_shard(void *self, const struct pack_item *item, struct pack_failure *failure)
{
    struct shards *shards = self;
    if (item->bad)
        return true;
    if (!begin_sample(shards, item, failure))
        return false;
    for (uint32_t p = 0; p < shards->header.part_count; p++)
        if (!add_piece(shards, &item->pieces[p], failure))
            return false;
    for (uint32_t f = 0; f < shards->header.field_count; f++) {
        const struct stk_shard_field *field = &shards->plan->fields[f];
        uint8_t word[STK_SHARD_WORD_BYTES] = { 0 };
        if (field->part != STOKER_NO_PART)
            continue;
        memcpy(word, item->rows[f].data, (size_t)stk_shard_value_bytes(field));
        if (!pack_room_add(&shards->words, word, sizeof(word)))
            return pack_fail(failure, shards->output.path, ENOMEM, "the index");
    }
    shards->header.count++;
    return true;
}

/* ---- all of them ---------------------------------------------------------------- */

static bool next_shard_range(void *self, struct pack_range *range, struct pack_failure *failure)
{
    struct shards *shards = self;
    const struct pack_plan *plan = shards->plan;
    struct stk_shard_header *header = &shards->header;
    bool kept = true;
    if (shards->output.file != NULL && !end_shard(shards, failure))
        return false;
    for (; kept && shards->next < plan->shard_count; shards->next += plan->world_size) {
        header->number = (uint32_t)shards->next;
        header->source_first = shards->next * plan->shard_samples;
        header->source_count = plan->info->count - header->source_first;
        if (header->source_count > plan->shard_samples)
            header->source_count = plan->shard_samples;
        if (!keep_shard(shards, &kept, failure))
            return false;
    }
    *range = (struct pack_range){ .first = header->source_first,
                                  .count = kept ? 0 : header->source_count };
    return kept || begin_shard(shards, failure);
}

static bool finish_shards(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    const struct shards *shards = self;
    *tally = shards->tally;
    return tally->samples > 0 || shards->plan->world_size > 1 ||
           pack_fail(failure, shards->plan->arguments->target, 0, "all samples are bad");
}

static void close_shards(void *self)
{
    struct shards *shards = self;
    if (shards == NULL)
        return;
    pack_output_drop(&shards->output);
    pack_room_free(&shards->block);
    pack_room_free(&shards->packed);
    pack_room_free(&shards->blocks);
    pack_room_free(&shards->entries);
    pack_room_free(&shards->words);
    pack_room_free(&shards->names);
    free(shards);
}

/* Append the names of the label's classes, each ended by a 0, if all have one and they fit. Returns
 * false if out of memory. */
static bool take_class_names(const struct pack_plan *plan, struct pack_room *names)
{
    const int32_t label = stoker_dataset_find_field(plan->source, "label");
    const bool words = label >= 0 && plan->fields[label].part == STOKER_NO_PART &&
                       plan->fields[label].dtype == STOKER_DTYPE_INT64;
    for (uint32_t i = 0; words && i < plan->info->class_count; i++) {
        const char *name = stoker_dataset_class_name(plan->source, (uint32_t)label, i);
        const size_t bytes = name == NULL ? 0 : strlen(name) + 1;
        if (bytes < 2 || names->used + bytes > STK_SHARD_NAMES_MAX) {
            names->used = 0;
            return true;
        }
        if (!pack_room_add(names, name, bytes))
            return false;
    }
    return true;
}

/* Rows that are stored as they are may be read straight into their place. */
static uint32_t alignment_of(const struct pack_plan *plan)
{
    if (plan->arguments->block_bytes > 0)
        return 1;
    const struct stk_shard_field *first = &plan->fields[0];
    const bool raw = plan->arguments->codec == PACK_RAW ||
                     (plan->arguments->codec == PACK_KEEP && !stk_shard_is_pixels(first));
    return raw && plan->part_count == 1 && !first->varies
               ? stk_shard_alignment(stk_shard_value_bytes(first))
               : 8;
}

static bool open_shards(void **self, const struct pack_plan *plan, struct pack_failure *failure)
{
    const char *target = plan->arguments->target;
    struct shards *shards = calloc(1, sizeof(*shards));
    *self = shards;
    if (shards == NULL || !take_class_names(plan, &shards->names))
        return pack_fail(failure, target, ENOMEM, "opening");
    shards->plan = plan;
    shards->next = plan->rank;
    shards->header = (struct stk_shard_header){ .set_id = plan->set_id,
                                                .alignment = alignment_of(plan),
                                                .field_count = plan->info->field_count,
                                                .part_count = plan->part_count,
                                                .names_bytes = shards->names.used,
                                                .shard_count = (uint32_t)plan->shard_count };
    const int fd = pack_folder_make(target, failure);
    if (fd < 0)
        return false;
    close(fd);
    return is_alone(plan, failure);
}

const struct pack_target pack_target_shards = { .open = open_shards,
                                                .next = next_shard_range,
                                                .add = add_to_shard,
                                                .finish = finish_shards,
                                                .close = close_shards };
