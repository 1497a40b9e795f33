/* shards.c - "shards:DIR": samples packed into a few large files by stoker-pack.
 *
 *   spec ──▶ names ──▶ headers ──▶ consistent? ──▶ indexes ──▶ callbacks
 *
 * Verified indexes lie in memory, 32 bytes a sample, so that a lookup is one access. Records are
 * verified by their codec when they are read (record.h).
 */
#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "datasets/formats.h"
#include "datasets/label_column.h"
#include "datasets/opening.h"
#include "datasets/shards/fielded.h"
#include "datasets/shards/file.h"
#include "datasets/shards/list.h"
#include "datasets/shards/record.h"
#include "loader/base/memory.h"

enum {
    LOOK_FILES = 64,  /* entries read to recognise a plain path */
    RECORDS_AHEAD = 8 /* index entries prefetched: an index fits no cache */
};

struct shards {
    struct stk_shard_list list;
    struct stk_shard_file *files; /* list.count of them */
    struct stk_region region;     /* the records */
    struct stk_shard_record *records;
    uint64_t count;
    uint32_t longest_bytes;
    uint32_t needs; /* mask of codecs in all shards */
    char *names;    /* classes, each ended by a 0; NULL = none */
    uint32_t *name_at;
    struct stk_shard_decoder decoder;
    struct stk_label_column column; /* if labels are integers */
    struct stk_shard_known known;   /* if verify=once or map=1 */
    bool maps;
};

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct shards *shards = self;
    const struct stk_shard_header *like = &shards->files[0].header;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = shards->count,
                                  .dtype = like->dtype,
                                  .rank = like->rank,
                                  .is_image = like->is_image,
                                  .label_dtype = like->label_dtype,
                                  .class_count = like->class_count,
                                  .file_count = shards->list.count,
                                  .encoded_bytes_max = shards->longest_bytes,
                                  .field_count = like->label_dtype == STOKER_DTYPE_NONE ? 1 : 2,
                                  .part_count = 1 };
    memcpy(out->shape, like->shape, sizeof(out->shape));
    return STOKER_OK;
}

/* Of rows with a name. */
static int field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct shards *shards = self;
    const struct stk_shard_header *like = &shards->files[0].header;
    if (number == 1) {
        out->name = "label", out->dtype = like->label_dtype, out->part = STOKER_NO_PART;
        out->class_count = like->class_count;
        return STOKER_OK;
    }
    out->name = like->name, out->dtype = like->dtype, out->rank = like->rank;
    out->kind = like->is_image ? STOKER_FIELD_IMAGE : STOKER_FIELD_ARRAY;
    memcpy(out->shape, like->shape, sizeof(out->shape));
    return STOKER_OK;
}

/* A record that was read once, so that the page cache has it. The position stays, as it identifies the sample. */
static void take_from_mapping(const struct shards *shards, const struct stk_shard_record *record,
                              stoker_part *out)
{
    out->extent.memory = shards->files[record->file].mapped + record->offset;
    if (shards->decoder.once && record->codec == STK_SHARD_RAW)
        out->codec = NULL; /* the row itself, which is gathered */
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct shards *shards = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < shards->count);
        __builtin_prefetch(
            &shards->records[ids[i + RECORDS_AHEAD < count ? i + RECORDS_AHEAD : i]]);
        const struct stk_shard_record *record = &shards->records[ids[i]];
        out[i] = (stoker_part){
            .extent = { .offset = record->offset, .bytes = record->bytes, .file = record->file },
        };
        stk_shard_decoder_describe(&shards->decoder, record, ids[i], &out[i]);
        if (shards->maps && stk_shard_known_has(&shards->known, ids[i]))
            take_from_mapping(shards, record, &out[i]);
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct shards *shards = self;
    const bool floats = shards->files[0].header.label_dtype == STOKER_DTYPE_FLOAT32;
    if (!floats && stk_label_column_take(&shards->column, ids, count, out))
        return STOKER_OK;
    for (uint32_t i = 0; i < count; i++) {
        const stoker_label label = shards->records[ids[i]].label;
        if (floats)
            ((float *)out)[i] = label.value;
        else
            ((int64_t *)out)[i] = label.index;
    }
    return STOKER_OK;
}

static int file(const void *self, uint32_t number, stoker_file *out)
{
    const struct shards *shards = self;
    const struct stk_source *source = &shards->files[number].source;
    *out = (stoker_file){ .path = source->path, .fd = source->fd, .size = source->size };
    return STOKER_OK;
}

static const char *class_name(const void *self, uint32_t index)
{
    const struct shards *shards = self;
    return shards->names == NULL ? NULL : shards->names + shards->name_at[index];
}

static const char *stored_as(const void *self, uint64_t id)
{
    const struct shards *shards = self;
    return stk_kinds[shards->records[id].codec].name;
}

static void destroy(void *self)
{
    struct shards *shards = self;
    stk_shard_decoder_close(&shards->decoder);
    for (uint32_t i = 0; shards->files != NULL && i < shards->list.count; i++)
        stk_shard_file_close(&shards->files[i]);
    stk_region_unmap(&shards->region);
    stk_free(shards->files);
    stk_shard_known_free(&shards->known);
    stk_label_column_free(&shards->column);
    stk_free(shards->names);
    stk_free(shards->name_at);
    stk_shard_list_free(&shards->list);
    stk_free(shards);
}

#define OPS                                                                                        \
    .struct_size = sizeof(stoker_dataset_ops), .name = "shards", .describe = describe,             \
    .locate = locate, .values = values, .file = file, .destroy = destroy,                          \
    .class_name = class_name, .stored_as = stored_as
/* Without field() the rows are called image or row, and the fingerprint says nothing about fields. */
static const stoker_dataset_ops ops = { OPS };
static const stoker_dataset_ops named_ops = { OPS, .field = field };

/* ---- consistency ---------------------------------------------------------------- */

/* Needed only while opening. */
struct opening {
    struct stk_opening base;
    uint64_t partial; /* 1 = shards may be missing, and come from several sets */
    uint64_t map;     /* 1 = records are taken from mapped files once they have been read */
    char verify[STK_PARAMETER_BYTES_MAX]; /* always, once */
    uint64_t bytes_max;
};

/* What differs between two shards that must match; NULL = nothing. */
static const char *difference(const struct stk_shard_header *a, const struct stk_shard_header *b)
{
    if (a->dtype != b->dtype)
        return "element types";
    if (a->rank != b->rank || a->is_image != b->is_image ||
        memcmp(a->shape, b->shape, sizeof(a->shape)) != 0)
        return "shapes";
    if (a->label_dtype != b->label_dtype || a->class_count != b->class_count ||
        a->names_bytes != b->names_bytes)
        return "labels";
    return strcmp(a->name, b->name) == 0 ? NULL : "the name of the rows";
}

/* Why b cannot follow a in a complete set; NULL = it can. */
static const char *gap(const struct stk_shard_header *a, const struct stk_shard_header *b)
{
    if (a->set_id != b->set_id)
        return "the sets they were packed in";
    if ((a->flags & STK_SHARD_LAST) != 0 || b->number != a->number + 1)
        return "the numbers: shards are missing, or named out of order";
    if (b->first != a->first + a->count || b->source_first != a->source_first + a->source_count)
        return "the samples they begin and end with";
    return NULL;
}

static int mismatch(const struct opening *opening, const struct stk_shard_file *a,
                    const struct stk_shard_file *b, const char *what)
{
    const struct stk_place place = stk_at(b->source.path, STOKER_NO_OFFSET);
    return stk_error_set(opening->base.error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                         "it and %s disagree about %s", a->source.path, what);
}

static int check_ends(const struct shards *shards, const struct opening *opening)
{
    const struct stk_shard_header *first = &shards->files[0].header;
    const struct stk_shard_header *last = &shards->files[shards->list.count - 1].header;
    if (first->number != 0 || first->first != 0)
        return stk_opening_refuse(&opening->base, STOKER_EMISMATCH,
                                  "the first one is missing; partial=1 allows it");
    if ((last->flags & STK_SHARD_LAST) == 0)
        return stk_opening_refuse(
            &opening->base, STOKER_EMISMATCH,
            "the last one is missing (packing did not end?); partial=1 allows it");
    return STOKER_OK;
}

static int check_together(const struct shards *shards, const struct opening *opening)
{
    for (uint32_t i = 1; i < shards->list.count; i++) {
        const struct stk_shard_file *a = &shards->files[i - 1];
        const struct stk_shard_file *b = &shards->files[i];
        const char *what = difference(&a->header, &b->header);
        if (what == NULL && opening->partial == 0)
            what = gap(&a->header, &b->header);
        if (what != NULL)
            return mismatch(opening, a, b, what);
    }
    return opening->partial == 0 ? check_ends(shards, opening) : STOKER_OK;
}

/* ---- indexes -------------------------------------------------------------------- */

static int open_files(struct shards *shards, const struct opening *opening)
{
    int rc = stk_shard_list_make(&shards->list, opening->base.path, opening->base.error);
    if (rc != STOKER_OK)
        return rc;
    shards->files = stk_calloc(shards->list.count, sizeof(*shards->files));
    if (shards->files == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    for (uint32_t i = 0; i < shards->list.count; i++) {
        struct stk_shard_file *shard = &shards->files[i];
        rc = stk_shard_file_open(shard, shards->list.paths[i], opening->base.error);
        if (rc != STOKER_OK)
            return rc;
        if (__builtin_add_overflow(shards->count, shard->header.count, &shards->count))
            return stk_opening_refuse(&opening->base, STOKER_ELIMIT, "too many samples");
        shards->needs |= shard->header.needs;
        if (shard->header.longest_bytes > shards->longest_bytes)
            shards->longest_bytes = shard->header.longest_bytes;
    }
    return check_together(shards, opening);
}

/* Check the sizes in the headers against max_bytes before allocating. */
static int take_memory(struct shards *shards, const struct opening *opening)
{
    const struct stk_shard_header *like = &shards->files[0].header;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(shards->count, (uint64_t)STK_SHARD_ENTRY_BYTES, &bytes) ||
        bytes > opening->bytes_max || 3 * (uint64_t)like->names_bytes > opening->bytes_max - bytes)
        return stk_opening_refuse(&opening->base, STOKER_ELIMIT,
                                  "their indexes take more than max_bytes");
    if (stk_region_map(&shards->region, (size_t)bytes) != STOKER_OK)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the indexes");
    shards->records = shards->region.base;
    if (like->names_bytes == 0)
        return STOKER_OK;
    shards->names = stk_calloc(like->names_bytes, 1);
    shards->name_at = stk_calloc((size_t)like->class_count + 1, sizeof(*shards->name_at));
    return shards->names != NULL && shards->name_at != NULL
               ? STOKER_OK
               : stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the names of the classes");
}

/* One name per class, each ended by a 0. */
static int find_names(struct shards *shards, const struct opening *opening)
{
    const struct stk_shard_header *like = &shards->files[0].header;
    uint32_t at = 0;
    uint32_t found = 0;
    for (; found < like->class_count && at < like->names_bytes; found++) {
        const size_t left = like->names_bytes - at;
        const size_t length = strnlen(shards->names + at, left);
        if (length == 0 || length == left)
            break;
        shards->name_at[found] = at;
        at += (uint32_t)length + 1;
    }
    return found == like->class_count && at == like->names_bytes
               ? STOKER_OK
               : stk_opening_refuse(&opening->base, STOKER_EFORMAT,
                                    "the names of the classes are not as many as the header says");
}

static int read_indexes(struct shards *shards, const struct opening *opening)
{
    const uint32_t names_bytes = shards->files[0].header.names_bytes;
    uint64_t first = 0;
    char *names = stk_calloc((size_t)names_bytes + 1, 1);
    if (names == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the names of the classes");
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < shards->list.count; i++) {
        const struct stk_shard_file *shard = &shards->files[i];
        rc = stk_shard_file_index(shard, i, shards->records + first, names, opening->base.error);
        first += shard->header.count;
        if (rc != STOKER_OK || names_bytes == 0)
            continue;
        if (i == 0)
            memcpy(shards->names, names, names_bytes);
        else if (memcmp(shards->names, names, names_bytes) != 0)
            rc = mismatch(opening, &shards->files[0], shard, "the names of the classes");
    }
    stk_free(names);
    return rc == STOKER_OK && names_bytes > 0 ? find_names(shards, opening) : rc;
}

static int make_decoder(struct shards *shards, const struct opening *opening)
{
    const char *what = NULL;
    const int rc = stk_shard_decoder_init(&shards->decoder, &shards->files[0].header, shards->needs,
                                          opening->base.warnings_fail, &what);
    return rc == STOKER_OK ? rc : stk_opening_refuse(&opening->base, rc, what);
}

static int64_t label_of(const void *self, uint64_t id)
{
    const struct shards *shards = self;
    return shards->records[id].label.index;
}

static int copy_labels(struct shards *shards, const struct opening *opening)
{
    if (shards->files[0].header.label_dtype != STOKER_DTYPE_INT64)
        return STOKER_OK;
    const int rc = stk_label_column_make(&shards->column, shards->count, label_of, shards);
    return rc == STOKER_OK ? rc : stk_opening_refuse(&opening->base, rc, "the labels");
}

/* Marks of verified records, and mappings, if asked for. */
static int map_files(struct shards *shards, const struct opening *opening)
{
    int rc = STOKER_OK;
    shards->decoder.once = strcmp(opening->verify, "once") == 0;
    shards->maps = opening->map != 0;
    if (!shards->decoder.once && strcmp(opening->verify, "always") != 0)
        return stk_opening_refuse(&opening->base, STOKER_EINVAL, "verify is not always or once");
    if (!shards->decoder.once && !shards->maps)
        return STOKER_OK;
    rc = stk_shard_known_make(&shards->known, shards->records, shards->count);
    if (rc != STOKER_OK)
        return stk_opening_refuse(&opening->base, rc, "the marks of verified records");
    shards->decoder.known = &shards->known;
    for (uint32_t i = 0; shards->maps && rc == STOKER_OK && i < shards->list.count; i++)
        rc = stk_shard_file_map(&shards->files[i], opening->base.error);
    return rc;
}

/* ---- open ----------------------------------------------------------------------- */

static int open_set(stoker_dataset **out, const struct opening *opening)
{
    struct shards *shards = stk_calloc(1, sizeof(*shards));
    if (shards == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    int rc = open_files(shards, opening);
    if (rc == STOKER_OK)
        rc = take_memory(shards, opening);
    if (rc == STOKER_OK)
        rc = read_indexes(shards, opening);
    if (rc == STOKER_OK)
        rc = make_decoder(shards, opening);
    if (rc == STOKER_OK)
        rc = copy_labels(shards, opening);
    if (rc == STOKER_OK)
        rc = map_files(shards, opening);
    const bool named = rc == STOKER_OK && shards->files[0].header.name[0] != '\0';
    return stk_opening_finish(&opening->base, rc, out, named ? &named_ops : &ops, shards);
}

static int open_shards(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    struct opening opening = { .base = STK_OPENING_INIT("shards", error),
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
    bool fielded = false;
    if (rc == STOKER_OK)
        rc = stk_fielded_look(&opening.base, &fielded);
    if (rc == STOKER_OK && fielded)
        return stk_fielded_open(out, &opening.base, opening.partial != 0, opening.bytes_max);
    return rc == STOKER_OK ? open_set(out, &opening) : rc;
}

/* Returns true for a folder with a shard among its first entries. */
static bool recognise_shards(const char *path)
{
    DIR *stream = opendir(path);
    bool found = false;
    if (stream == NULL)
        return false;
    const struct dirent *entry;
    for (int looks = 0; !found && looks < LOOK_FILES && (entry = readdir(stream)) != NULL; looks++)
        found = stk_shard_list_takes(entry->d_name);
    closedir(stream);
    return found;
}

const struct stk_format stk_format_shards = { .name = "shards",
                                              .open = open_shards,
                                              .recognise = recognise_shards };
