/* fielded.c - see fielded.h.
 *
 *   names ──▶ headers ──▶ consistent? ──▶ indexes ──▶ a codec per field ──▶ callbacks
 *             fielded_files.c             fielded_index.c   field_decoder.c
 *
 * Verified indexes lie in memory, 24 bytes a part. A part is verified by its codec when it is read.
 */
#include "datasets/shards/fielded.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "datasets/shards/begin.h"
#include "datasets/shards/fielded_set.h"
#include "loader/base/memory.h"

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_fielded *set = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = set->count,
                                  .field_count = set->field_count,
                                  .part_count = set->part_count,
                                  .file_count = set->list.count,
                                  .encoded_bytes_max = set->longest_bytes };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct stk_fielded *set = self;
    const struct stk_field_decoder *decoder = &set->decoders[number];
    const struct stk_fields_field *field = &decoder->field;
    const bool files_only = decoder->any_image && decoder->codec.decode_any != NULL;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = field->name,
                                .kind = field->kind,
                                .dtype = field->dtype,
                                .rank = field->rank,
                                .varies = field->varies,
                                .part = field->part,
                                .class_count = field->class_count,
                                .pixels_max = files_only ? set->pixels_max : 0,
                                .sizes_differ = field->sizes_differ };
    memcpy(out->shape, field->shape, sizeof(out->shape));
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct stk_fielded *set = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < set->count);
        const struct stk_fielded_part *from = &set->parts[ids[i] * set->part_count];
        for (uint32_t p = 0; p < set->part_count; p++, parts++) {
            *parts = (stoker_part){
                .extent = { .offset = from[p].offset, .bytes = from[p].bytes, .file = from[p].file }
            };
            stk_field_decoder_describe(&set->decoders[set->field_of[p]], from[p].codec, from[p].sum,
                                       parts);
        }
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct stk_fielded *set = self;
    const bool floats = set->decoders[field].field.dtype == STOKER_DTYPE_FLOAT32;
    for (uint32_t i = 0; i < count; i++) {
        if (floats)
            ((float *)out)[i] = set->labels[ids[i]].value;
        else
            ((int64_t *)out)[i] = set->labels[ids[i]].index;
    }
    return STOKER_OK;
}

/* A field that varies is stored raw, so the bytes of its part say how long it is. */
static int lengths(const void *self, uint32_t number, const uint64_t *ids, uint32_t count,
                   uint64_t *out)
{
    const struct stk_fielded *set = self;
    const struct stk_fields_field *field = &set->decoders[number].field;
    uint64_t entry_bytes = stoker_dtype_bytes(field->dtype);
    for (uint32_t axis = 1; axis < field->rank; axis++)
        entry_bytes *= field->shape[axis];
    for (uint32_t i = 0; i < count; i++)
        out[i] = set->parts[ids[i] * set->part_count + field->part].bytes / entry_bytes;
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t number, stoker_file *out)
{
    const struct stk_fielded *set = self;
    const struct stk_source *source = &set->files[number].source;
    *out = (stoker_file){ .path = source->path, .fd = source->fd, .size = source->size };
    return STOKER_OK;
}

static const char *class_name(const void *self, uint32_t index)
{
    const struct stk_fielded *set = self;
    return set->names == NULL || index >= set->class_count ? NULL : set->names[index];
}

static const char *stored_as(const void *self, uint64_t id)
{
    const struct stk_fielded *set = self;
    return stk_kinds[set->parts[id * set->part_count].codec].name;
}

static void destroy(void *self)
{
    struct stk_fielded *set = self;
    for (uint32_t i = 0; set->decoders != NULL && i < set->field_count; i++)
        stk_field_decoder_close(&set->decoders[i]);
    for (uint32_t i = 0; set->files != NULL && i < set->list.count; i++)
        if (set->files[i].source.path != NULL)
            stk_source_close(&set->files[i].source);
    stk_region_unmap(&set->region);
    stk_free(set->files);
    stk_free(set->decoders);
    stk_free(set->field_of);
    stk_free(set->index);
    stk_free(set->names);
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
                                        .lengths = lengths };

/* ---- decoders ------------------------------------------------------------------- */

/* Images of any size can be resized only if no part of the field is a row of pixels. */
static bool only_images(const struct stk_fielded *set, uint32_t part)
{
    for (uint64_t i = 0; i < set->count; i++)
        if (!stk_kind_is_image(set->parts[i * set->part_count + part].codec))
            return false;
    return true;
}

static int make_decoders(struct stk_fielded *set, const struct stk_fielded_opening *opening)
{
    int rc = STOKER_OK;
    const char *what = NULL;
    set->pixels_max = opening->base->pixels_max;
    for (uint32_t i = 0; rc == STOKER_OK && i < set->field_count; i++) {
        struct stk_field_decoder *decoder = &set->decoders[i];
        const struct stk_field_decoder_options options = {
            .only_images = decoder->any_image && only_images(set, decoder->field.part),
            .pixels_max = set->pixels_max,
            .warnings_fail = opening->base->warnings_fail,
        };
        rc = stk_field_decoder_init(decoder, &options, &what);
    }
    return rc == STOKER_OK ? rc : stk_opening_refuse(opening->base, rc, what);
}

/* ---- open ----------------------------------------------------------------------- */

/* Write the path of any shard in the folder; false: there is none. */
static bool find_shard(const char *folder, char path[PATH_MAX])
{
    DIR *stream = opendir(folder);
    bool found = false;
    if (stream == NULL)
        return false;
    const struct dirent *entry;
    while (!found && (entry = readdir(stream)) != NULL)
        found = stk_shard_list_takes(entry->d_name) &&
                snprintf(path, PATH_MAX, "%s/%s", folder, entry->d_name) < PATH_MAX;
    closedir(stream);
    return found;
}

int stk_fielded_look(const struct stk_opening *opening, bool *is)
{
    char path[PATH_MAX] = "";
    struct stk_source source;
    uint8_t begin[12] = { 0 };
    *is = false;
    if (!find_shard(opening->path, path))
        return STOKER_OK; /* listing the folder says why */
    int rc = stk_source_open(&source, path, opening->error);
    if (rc != STOKER_OK)
        return rc;
    if (source.size >= sizeof(begin))
        rc = stk_source_read(&source, begin, sizeof(begin), 0, opening->error);
    stk_source_close(&source);
    *is = rc == STOKER_OK && stk_shard_version(begin) == STK_SHARD_FIELDS_VERSION;
    return rc;
}

int stk_fielded_open(stoker_dataset **out, const struct stk_opening *base, bool partial,
                     uint64_t bytes_max)
{
    const struct stk_fielded_opening opening = { .base = base,
                                                 .partial = partial,
                                                 .bytes_max = bytes_max };
    struct stk_fielded *set = stk_calloc(1, sizeof(*set));
    if (set == NULL)
        return stk_opening_refuse(base, STOKER_ENOMEM, "opening");
    int rc = stk_fielded_open_files(set, &opening);
    if (rc == STOKER_OK)
        rc = stk_fielded_load_indexes(set, &opening);
    if (rc == STOKER_OK)
        rc = make_decoders(set, &opening);
    return stk_opening_finish(base, rc, out, &ops, set);
}
