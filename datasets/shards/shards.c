/* shards.c - "shards:DIR": samples packed into a few large files by stoker-pack. See set.h. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "datasets/formats.h"
#include "datasets/shards/set.h"

enum {
    LOOK_FILES = 64,  /* entries read to recognize a plain path */
    RECORDS_AHEAD = 8 /* samples whose index entries are prefetched: an index fits no cache */
};

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_shard_set *set = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = set->count,
                                  .field_count = set->field_count,
                                  .part_count = set->part_count,
                                  .file_count = set->list.count,
                                  .encoded_bytes_max = set->longest_bytes,
                                  .block_count = set->block_count };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct stk_shard_set *set = self;
    const struct stk_shard_decoder *decoder = &set->decoders[number];
    const struct stk_shard_field *field = &decoder->field;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = field->name,
                                .kind = field->kind,
                                .dtype = field->dtype,
                                .rank = field->rank,
                                .varies = field->varies,
                                .part = field->part,
                                .class_count = field->class_count,
                                .pixels_max =
                                    stk_shard_decoder_only_files(decoder) ? set->pixels_max : 0,
                                .sizes_differ = field->sizes_differ };
    memcpy(out->shape, field->shape, sizeof(out->shape));
    return STOKER_OK;
}

/* A part that was read once, so that the page cache has it. The position stays: it identifies the
 * sample. */
static void take_from_mapping(const struct stk_shard_set *set,
                              const struct stk_shard_record *record, bool once, stoker_part *out)
{
    const uint8_t *mapped =
        atomic_load_explicit(&set->files[record->file].mapped, memory_order_relaxed);
    if (mapped == NULL)
        return;
    out->extent.memory = mapped + record->offset;
    if (once && record->codec == STK_SHARD_RAW)
        out->codec = NULL; /* the row itself, which is gathered */
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct stk_shard_set *set = self;
    const uint32_t part_count = set->part_count;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < set->count);
        __builtin_prefetch(
            &set->records[ids[i + RECORDS_AHEAD < count ? i + RECORDS_AHEAD : i] * part_count]);
        for (uint32_t p = 0; p < part_count; p++, parts++) {
            const uint64_t index = ids[i] * part_count + p;
            const struct stk_shard_record *record = &set->records[index];
            const struct stk_shard_decoder *decoder = set->decoder_of[p];
            *parts = (stoker_part){
                .extent = { .offset = record->offset, .bytes = record->bytes, .file = record->file }
            };
            stk_shard_decoder_describe(decoder, record, index, parts);
            if (set->maps && stk_shard_known_has(&set->known, index))
                take_from_mapping(set, record, decoder->once, parts);
        }
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct stk_shard_set *set = self;
    const uint64_t *words = set->words + set->word_of[field] * set->count;
    const size_t bytes = stoker_dtype_bytes(set->decoders[field].field.dtype);
    if ((int32_t)field == set->label && stk_label_column_take(&set->column, ids, count, out))
        return STOKER_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (bytes == 8)
            ((uint64_t *)out)[i] = words[ids[i]];
        else if (bytes == 4)
            ((uint32_t *)out)[i] = (uint32_t)words[ids[i]];
        else if (bytes == 2)
            ((uint16_t *)out)[i] = (uint16_t)words[ids[i]];
        else
            ((uint8_t *)out)[i] = (uint8_t)words[ids[i]];
    }
    return STOKER_OK;
}

/* A field that varies is stored raw, so the bytes of its part say how long it is. */
static int lengths(const void *self, uint32_t number, const uint64_t *ids, uint32_t count,
                   uint64_t *out)
{
    const struct stk_shard_set *set = self;
    const struct stk_shard_decoder *decoder = &set->decoders[number];
    for (uint32_t i = 0; i < count; i++)
        out[i] = set->records[ids[i] * set->part_count + decoder->field.part].bytes /
                 decoder->entry_bytes;
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t number, stoker_file *out)
{
    const struct stk_shard_set *set = self;
    *out = stk_source_file(&set->files[number].source);
    out->blocks = set->files[number].blocks.count > 0 ? &set->files[number].blocks : NULL;
    return STOKER_OK;
}

static uint64_t block_first(const void *self, uint64_t block)
{
    const struct stk_shard_set *set = self;
    return set->block_first[block];
}

static const char *class_name(const void *self, uint32_t field, uint32_t index)
{
    const struct stk_shard_set *set = self;
    return set->names == NULL || (int32_t)field != set->label ? NULL
                                                              : set->names + set->name_at[index];
}

static const char *stored_as(const void *self, uint64_t id)
{
    const struct stk_shard_set *set = self;
    return stk_kinds[set->records[id * set->part_count].codec].name;
}

static void close_file(struct stk_shard_file *file)
{
    if (file->mapping != NULL)
        munmap((void *)file->mapping, (size_t)file->source.size);
    if (file->source.path != NULL)
        stk_source_close(&file->source);
}

static void destroy(void *self)
{
    struct stk_shard_set *set = self;
    stk_shard_leases_end(&set->leases);
    for (uint32_t i = 0; set->files != NULL && i < set->list.count; i++)
        close_file(&set->files[i]);
    stk_region_unmap(&set->region);
    stk_free(set->files);
    stk_free(set->decoders);
    stk_free(set->decoder_of);
    stk_free(set->word_of);
    stk_free(set->fields);
    stk_free(set->names);
    stk_free(set->name_at);
    stk_free(set->blocks);
    stk_free(set->block_first);
    stk_shard_known_free(&set->known);
    stk_label_column_free(&set->column);
    stk_shard_list_free(&set->list);
    stk_free(set);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "shards",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy,
                                        .class_name = class_name,
                                        .stored_as = stored_as,
                                        .lengths = lengths,
                                        .block_first = block_first };

/* ---- open ----------------------------------------------------------------------- */

/* If the file is cut short while it is mapped without a lease, or cannot be read, a touch of the
 * missing part ends the process (SIGBUS). */
static int map_file(const struct stk_shard_opening *opening, struct stk_shard_file *file)
{
    if (file->blocks.count > 0)
        return stk_shard_refuse(opening, file, STOKER_ENOTSUP, STOKER_NO_OFFSET,
                                "map=1 needs shards without blocks");
    const int rc = stk_source_map(&file->source, &file->mapping, opening->base.error);
    atomic_init(&file->mapped, file->mapping);
    return rc;
}

/* Marks of verified parts, and mappings, if asked for. */
static int prepare_reading(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    const bool once = strcmp(opening->verify, "once") == 0;
    set->maps = opening->map != 0;
    if (!once && strcmp(opening->verify, "always") != 0)
        return stk_opening_refuse(&opening->base, STOKER_EINVAL, "verify is not always or once");
    if (!once && !set->maps)
        return STOKER_OK;
    int rc = stk_shard_known_make(&set->known, set->records, set->count * set->part_count);
    if (rc != STOKER_OK)
        return stk_opening_refuse(&opening->base, rc, "the marks of verified records");
    for (uint32_t i = 0; i < set->field_count; i++) {
        set->decoders[i].known = &set->known;
        set->decoders[i].once = once;
    }
    for (uint32_t i = 0; set->maps && rc == STOKER_OK && i < set->list.count; i++)
        rc = map_file(opening, &set->files[i]);
    if (set->maps && rc == STOKER_OK)
        stk_shard_leases_begin(&set->leases, set->files, set->list.count);
    return rc;
}

static int make_decoders(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    set->pixels_max = opening->base.pixels_max;
    for (uint32_t i = 0; i < set->field_count; i++) {
        const char *what = NULL;
        const int rc = stk_shard_decoder_init(&set->decoders[i], set->pixels_max,
                                              opening->base.warnings_fail, &what);
        if (rc != STOKER_OK)
            return stk_opening_refuse(&opening->base, rc, what);
    }
    return STOKER_OK;
}

static int64_t label_of(const void *self, uint64_t id)
{
    const struct stk_shard_set *set = self;
    return (int64_t)set->words[set->word_of[set->label] * set->count + id];
}

static int copy_labels(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    const int rc =
        set->label < 0 ? STOKER_OK : stk_label_column_make(&set->column, set->count, label_of, set);
    return rc == STOKER_OK ? rc : stk_opening_refuse(&opening->base, rc, "the labels");
}

static int open_set(stoker_dataset **out, const struct stk_shard_opening *opening)
{
    struct stk_shard_set *set = stk_calloc(1, sizeof(*set));
    if (set == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    int rc = stk_shard_open_files(set, opening);
    if (rc == STOKER_OK)
        rc = stk_shard_load_indexes(set, opening);
    if (rc == STOKER_OK)
        rc = prepare_reading(set, opening);
    if (rc == STOKER_OK)
        rc = make_decoders(set, opening);
    if (rc == STOKER_OK)
        rc = copy_labels(set, opening);
    const bool leases = set->leases.watched; /* destroy() frees the set if this fails */
    rc = stk_opening_finish(&opening->base, rc, out, &ops, set);
    if (rc == STOKER_OK && leases)
        stk_dataset_set_recalls(*out);
    return rc;
}

static int open_shards(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_shard_opening opening = { .base =
                                             STK_OPENING_INIT("shards", options->storage, error),
                                         .bytes_max = options->max_bytes,
                                         .verify = "always" };
    const struct stk_parameter own[] = {
        { .key = "partial", .number = &opening.partial, .most = 1 },
        { .key = "map", .number = &opening.map, .most = 1 },
        { .key = "verify", .text = opening.verify },
    };
    int rc = stk_opening_folder(&opening.base, rest, options->split);
    if (rc == STOKER_OK)
        rc = stk_opening_parameters(&opening.base, false, own, sizeof(own) / sizeof(own[0]));
    return rc == STOKER_OK ? open_set(out, &opening) : rc;
}

/* Ends the list at the first shard, or after LOOK_FILES entries. */
static int look_at_name(void *looks, struct stk_listed *entry)
{
    if (stk_shard_list_takes(entry->object.name))
        return STOKER_FINISHED;
    return ++*(int *)looks < LOOK_FILES ? STOKER_OK : STOKER_EPOCH_END;
}

/* Returns true for a folder with a shard among its first entries. */
static bool recognize_shards(const stoker_storage *storage, const char *path)
{
    struct stk_storage_folder folder;
    int looks = 0;
    if (stk_storage_enter(&folder, storage, path, NULL) != STOKER_OK)
        return false;
    const int rc = stk_storage_list(&folder, ".", "", look_at_name, &looks, NULL);
    stk_storage_leave(&folder);
    return rc == STOKER_FINISHED;
}

const struct stk_format stk_format_shards = {
    .name = "shards",
    .about = "shards:DIR\trecords that stoker-pack has written",
    .open = open_shards,
    .recognize = recognize_shards
};
