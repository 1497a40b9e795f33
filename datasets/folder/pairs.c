/* pairs.c - see pairs.h.
 *
 *   images/a/0001.jpg  ┐
 *   masks/a/0001.png   ├ key "a/0001": a part each
 *   boxes/a/0001.npy   ┘
 *
 * Files are listed once, at open, and matched by key; those of stoker_dataset_from_files() come in
 * the caller's order. Each read opens its file and closes it.
 */
#include "datasets/folder/pairs.h"
#include "datasets/parameters.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "datasets/folder/pair_list.h"
#include "datasets/npy/sample.h"
#include "datasets/opening.h"
#include "datasets/source.h"
#include "loader/base/memory/memory.h"

enum { FOLDERS_MAX = STOKER_FILES_MAX, NPY_HEADER_BYTES = 512 };

enum use { USE_IMAGE, USE_MASK, USE_ARRAY, USE_BYTES };

struct field {
    char name[STOKER_FIELD_NAME_BYTES];
    enum use use;
    struct stk_pair_list list;
    struct stk_image_codec image;
    struct stk_image_row row;
    struct stk_npy_shape shape;
    stoker_codec npy;
    const stoker_codec *codec; /* NULL = raw */
    uint64_t length_max;       /* bytes: the longest file within max_file_bytes */
};

struct pairs {
    struct field fields[FOLDERS_MAX];
    uint32_t count; /* folders, of one part each */
    bool has_key;   /* a last field and part: the key */
    /* Lists of files: the arrays beside them, whose fields and parts follow; else NULL. */
    struct stk_array_set *beside;
    /* The folder that paths start from: the working directory, or a storage's top. */
    stoker_file root;
    uint32_t key_max; /* bytes of the longest key */
    uint32_t longest_bytes;
    uint64_t pixels_max;
};

/* Needed only while opening. */
struct opening {
    struct stk_opening base;
    uint64_t bytes_left; /* what is left of max_bytes, for the lists */
    uint64_t key;        /* 1 = the key is a field */
};

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct pairs *pairs = self;
    const char *found = pairs->fields[0].row.text;
    *out =
        (stoker_dataset_info){ .struct_size = sizeof(*out),
                               .count = pairs->fields[0].list.count,
                               .field_count = pairs->count + (pairs->has_key ? 1 : 0),
                               .part_count = pairs->count + (pairs->has_key ? 1 : 0),
                               .file_count = pairs->root.storage == NULL ? 0 : 1,
                               .encoded_bytes_max = pairs->longest_bytes,
                               .has_paths = true,
                               .directory = pairs->root.storage == NULL ? AT_FDCWD
                                                                        : STOKER_DIRECTORY_OF_FILE,
                               .description = found[0] != '\0' ? found : NULL };
    if (pairs->beside != NULL) {
        out->field_count += pairs->beside->array_count;
        out->part_count += pairs->beside->part_count;
        out->fingerprint = pairs->beside->fingerprint;
    }
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct pairs *pairs = self;
    if (pairs->beside != NULL && number >= pairs->count) {
        const int rc = stk_array_ops_memory.field(pairs->beside, number - pairs->count, out);
        out->part += out->part == STOKER_NO_PART ? 0 : pairs->count;
        return rc;
    }
    const struct field *field = &pairs->fields[number];
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = "key",
                                .kind = STOKER_FIELD_KIND_BYTES,
                                .dtype = STOKER_DTYPE_UINT8,
                                .rank = 1,
                                .shape = { pairs->key_max },
                                .varies = true,
                                .part = number };
    if (number == pairs->count)
        return STOKER_OK;
    out->name = field->name;
    out->shape[0] = field->length_max;
    if (field->use == USE_BYTES)
        return STOKER_OK;
    out->varies = false;
    if (field->use == USE_ARRAY) {
        out->kind = STOKER_FIELD_KIND_ARRAY;
        stk_npy_shape_describe(&field->shape, out);
        return STOKER_OK;
    }
    out->kind = field->use == USE_MASK ? STOKER_FIELD_KIND_MASK : STOKER_FIELD_KIND_IMAGE;
    out->rank = 3;
    out->shape[0] = field->row.shape.height;
    out->shape[1] = field->row.shape.width;
    out->shape[2] = field->row.shape.channels;
    out->pixels_max = pairs->pixels_max;
    out->sizes_differ = field->row.sizes_differ;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct pairs *pairs = self;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < pairs->fields[0].list.count);
        for (uint32_t f = 0; f < pairs->count; f++) {
            const struct field *field = &pairs->fields[f];
            *parts++ = (stoker_part){ .extent = { .path = stk_pair_path(&field->list, ids[i]),
                                                  .bytes = field->list.files[ids[i]].bytes },
                                      .codec = field->codec,
                                      .version = field->list.files[ids[i]].version };
        }
        const struct stk_pair_list *first = &pairs->fields[0].list;
        if (pairs->has_key)
            *parts++ = (stoker_part){ .extent = { .memory = stk_pair_key(first, ids[i]),
                                                  .bytes = first->files[ids[i]].key_bytes } };
        if (pairs->beside != NULL && rc == STOKER_OK) {
            rc = stk_array_ops_memory.locate(pairs->beside, &ids[i], 1, parts, error);
            parts += pairs->beside->part_count;
        }
    }
    return rc;
}

static int values(const void *self, uint32_t number, const uint64_t *ids, uint32_t count, void *out)
{
    const struct pairs *pairs = self;
    return stk_array_ops_memory.values(pairs->beside, number - pairs->count, ids, count, out);
}

static const char *class_name(const void *self, uint32_t number, uint32_t index)
{
    const struct pairs *pairs = self;
    return number < pairs->count
               ? NULL
               : stk_array_ops_memory.class_name(pairs->beside, number - pairs->count, index);
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    (void)file;
    *out = ((const struct pairs *)self)->root;
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct pairs *pairs = self;
    for (uint32_t i = 0; i < pairs->count; i++)
        stk_pair_list_free(&pairs->fields[i].list);
    if (pairs->beside != NULL)
        stk_array_ops_memory.destroy(pairs->beside);
    stk_free(pairs);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "folder",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .file = file_of,
                                        .destroy = destroy };

static const stoker_dataset_ops files_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                              .name = "files",
                                              .describe = describe,
                                              .field = describe_field,
                                              .locate = locate,
                                              .values = values,
                                              .file = file_of,
                                              .destroy = destroy,
                                              .class_name = class_name };

/* ---- what a folder holds -------------------------------------------------------- */

static const char *extension_of(const struct stk_pair_list *list, size_t at)
{
    const char *rest = stk_pair_key(list, at) + list->files[at].key_bytes;
    return rest[0] == '.' ? rest + 1 : rest;
}

static enum use use_of(const struct field *field, size_t at)
{
    const char *extension = extension_of(&field->list, at);
    if (strcasecmp(extension, "npy") == 0)
        return USE_ARRAY;
    if (stk_kind_of_extension(extension) == STK_SHARD_RAW)
        return USE_BYTES;
    return strncmp(field->name, "mask", 4) == 0 || strncmp(field->name, "seg", 3) == 0 ? USE_MASK
                                                                                       : USE_IMAGE;
}

/* All files of a folder are of one kind. */
static int choose_use(const struct opening *opening, struct field *field)
{
    field->use = use_of(field, 0);
    for (size_t i = 1; i < field->list.count; i++)
        if (use_of(field, i) != field->use)
            return stk_refuse_spec(opening->base.error, STOKER_EMISMATCH,
                                   "folder: %s and %s are not of one kind: images, .npy or others",
                                   stk_pair_path(&field->list, 0), stk_pair_path(&field->list, i));
    return STOKER_OK;
}

static uint64_t bytes_of(const void *self, uint64_t id)
{
    const struct field *field = self;
    return field->list.files[id].bytes;
}

static const char *name_of(const void *self, uint64_t id)
{
    const struct field *field = self;
    return stk_pair_path(&field->list, id);
}

static int probe(const void *self, uint64_t id, uint8_t *room, uint32_t bytes,
                 struct stk_image_shape *out, stoker_error *error)
{
    const struct field *field = self;
    const struct stk_place place = stk_at(stk_pair_path(&field->list, id), 0);
    struct stk_source source;
    int rc = stk_source_open(&source, field->list.storage, place.path, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_source_read(&source, room, bytes, 0, error);
    if (rc == STOKER_OK)
        rc = stk_image_probe_at(&place, room, bytes, out, error);
    stk_source_close(&source);
    return rc;
}

static int open_images(const struct opening *opening, struct field *field)
{
    const struct stk_survey_set set = { .self = field,
                                        .path = opening->base.path,
                                        .count = field->list.count,
                                        .bytes_max = opening->base.file_bytes_max,
                                        .far = stk_storage_is_far(opening->base.storage),
                                        .bytes = bytes_of,
                                        .probe = probe,
                                        .name = name_of };
    struct stk_opening base = opening->base;
    if (field->use == USE_MASK) {
        base.channels = 1;
        base.mask = true;
    }
    field->codec = &field->image.codec;
    return stk_opening_choose_row(&base, &set, &field->row, &field->image);
}

/* Read the header of one array. */
static int look_at_array(const struct opening *opening, struct field *field, size_t at)
{
    uint8_t begin[NPY_HEADER_BYTES];
    struct stk_source source;
    struct stk_npy_header header = { 0 };
    const struct stk_place place = stk_at(stk_pair_path(&field->list, at), STOKER_NO_OFFSET);
    stoker_error *error = opening->base.error;
    int rc = stk_source_open(&source, field->list.storage, place.path, error);
    if (rc != STOKER_OK)
        return rc;
    const size_t size = source.size < sizeof(begin) ? (size_t)source.size : sizeof(begin);
    rc = stk_source_read(&source, begin, size, 0, error);
    if (rc == STOKER_OK)
        rc = stk_npy_parse_sample(&header, begin, size, source.size, place.path, error);
    stk_source_close(&source);
    if (rc != STOKER_OK)
        return rc;
    return stk_npy_shape_add(&field->shape, &header)
               ? STOKER_OK
               : stk_error_set(
                     error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                     "it and %s differ in type or byte order, or in more than the first axis",
                     stk_pair_path(&field->list, 0));
}

static int open_contents(const struct opening *opening, struct field *field)
{
    int rc = STOKER_OK;
    if (field->use == USE_IMAGE || field->use == USE_MASK)
        return open_images(opening, field);
    if (field->use == USE_BYTES)
        return STOKER_OK;
    for (size_t i = 0; rc == STOKER_OK && i < field->list.count; i++)
        rc = look_at_array(opening, field, i);
    field->npy = stk_npy_sample_codec(&field->shape);
    field->codec = &field->npy;
    return rc;
}

/* ---- partners ------------------------------------------------------------------- */

static int lonely(const struct opening *opening, const struct field *has, size_t at,
                  const struct field *lacks)
{
    return stk_refuse_file(opening->base.error, STOKER_EMISMATCH, stk_pair_path(&has->list, at),
                           STOKER_NO_OFFSET, "folder: no file of that name for the field \"%s\"",
                           lacks->name);
}

/* Both lists are sorted: they are equal, or the first difference is a file without a partner. */
static int match_lists(const struct opening *opening, const struct field *a, const struct field *b)
{
    for (size_t i = 0; i < a->list.count || i < b->list.count; i++) {
        if (i == b->list.count)
            return lonely(opening, a, i, b);
        if (i == a->list.count)
            return lonely(opening, b, i, a);
        const int order = stk_pair_compare(&a->list, i, &b->list, i);
        if (order != 0)
            return order < 0 ? lonely(opening, a, i, b) : lonely(opening, b, i, a);
    }
    return STOKER_OK;
}

static void measure(struct pairs *pairs, const struct opening *opening)
{
    pairs->longest_bytes = 1;
    pairs->key_max = 1;
    for (uint32_t f = 0; f < pairs->count; f++) {
        struct field *field = &pairs->fields[f];
        field->length_max = 1;
        for (size_t i = 0; i < field->list.count; i++) {
            const struct stk_pair_file *file = &field->list.files[i];
            if (file->key_bytes > pairs->key_max)
                pairs->key_max = file->key_bytes;
            if (file->bytes > opening->base.file_bytes_max)
                continue;
            field->length_max = file->bytes > field->length_max ? file->bytes : field->length_max;
            if (file->bytes > pairs->longest_bytes)
                pairs->longest_bytes = file->bytes;
        }
    }
}

/* ---- open ----------------------------------------------------------------------- */

static int list_folders(struct pairs *pairs, struct opening *opening, const char *names)
{
    const char *at = names;
    struct stk_named item;
    int rc = STOKER_OK;
    while (rc == STOKER_OK && stk_named_next(&at, true, &item)) {
        char path[PATH_MAX];
        if (pairs->count == FOLDERS_MAX)
            return stk_opening_refuse(&opening->base, STOKER_ELIMIT, "more than 32 folders");
        if (item.text_bytes == 0 || item.text_bytes >= sizeof(path))
            return stk_opening_refuse(
                &opening->base, STOKER_ESPEC,
                "a folder's name is empty or too long; write images=DIR,masks=DIR");
        struct field *field = &pairs->fields[pairs->count++];
        memcpy(field->name, item.name, sizeof(field->name));
        (void)snprintf(path, sizeof(path), "%.*s", (int)item.text_bytes, item.text);
        rc = stk_pair_list_make(&field->list, opening->base.storage, path, &opening->bytes_left,
                                opening->base.error);
        if (rc == STOKER_OK)
            rc = choose_use(opening, field);
        if (rc == STOKER_OK && pairs->count > 1)
            rc = match_lists(opening, &pairs->fields[0], field);
    }
    return rc;
}

static stoker_file root_of(const stoker_storage *storage)
{
    const bool local = storage == &stk_storage_local;
    return (
        stoker_file){ .path = "", .fd = local ? AT_FDCWD : -1, .storage = local ? NULL : storage };
}

static int open_pairs(stoker_dataset **out, struct opening *opening, const char *names)
{
    struct pairs *pairs = stk_calloc(1, sizeof(*pairs));
    if (pairs == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    pairs->has_key = opening->key == 1;
    pairs->root = root_of(opening->base.storage);
    pairs->pixels_max = opening->base.pixels_max;
    int rc = list_folders(pairs, opening, names);
    for (uint32_t f = 0; rc == STOKER_OK && f < pairs->count; f++)
        rc = open_contents(opening, &pairs->fields[f]);
    if (rc == STOKER_OK)
        measure(pairs, opening);
    return stk_opening_finish(&opening->base, rc, out, &ops, pairs);
}

bool stk_folder_pairs_named(const stoker_storage *storage, const char *rest)
{
    return stk_named_begins(rest) && !stk_storage_has(storage, rest);
}

int stk_folder_pairs_open(stoker_dataset **out, const char *rest,
                          const stoker_dataset_options *options, stoker_error *error)
{
    const struct stk_spec spec = stk_spec_split(options->storage, rest, '?');
    struct opening opening = { .base = STK_OPENING_INIT("folder", options->storage, error),
                               .bytes_left = options->max_bytes };
    const struct stk_parameter own[] = { { .key = "key", .number = &opening.key, .most = 1 } };
    char names[PATH_MAX];
    opening.base.parameters = spec.after == NULL ? "" : spec.after;
    (void)snprintf(opening.base.path, sizeof(opening.base.path), "%.*s", (int)spec.name_bytes,
                   rest);
    if (options->split != NULL)
        return stk_opening_refuse(&opening.base, STOKER_EINVAL,
                                  "folders that are named have no splits");
    if (spec.name_bytes >= sizeof(names))
        return stk_opening_refuse(&opening.base, STOKER_ELIMIT, "the names are too long");
    memcpy(names, rest, spec.name_bytes);
    names[spec.name_bytes] = '\0';
    const int rc = stk_opening_parameters(&opening.base, true, own, 1);
    return rc == STOKER_OK ? open_pairs(out, &opening, names) : rc;
}

/* ---- lists of files ------------------------------------------------------------- */

static int take_list(struct pairs *pairs, struct opening *opening, const stoker_files *files,
                     uint64_t count)
{
    struct field *field = &pairs->fields[pairs->count++];
    (void)snprintf(field->name, sizeof(field->name), "%s", files->name);
    opening->base.height = files->height;
    opening->base.width = files->width;
    opening->base.channels = files->channels;
    int rc = stk_pair_list_of(&field->list, files->paths, count, &opening->bytes_left,
                              opening->base.error);
    if (rc == STOKER_OK)
        rc = choose_use(opening, field);
    return rc == STOKER_OK ? open_contents(opening, field) : rc;
}

int stk_folder_files_open(stoker_dataset **out, const struct stk_folder_files *given,
                          stoker_error *error)
{
    struct opening opening = { .base = STK_OPENING_INIT("files", &stk_storage_local, error),
                               .bytes_left = UINT64_MAX };
    struct pairs *pairs = stk_calloc(1, sizeof(*pairs));
    (void)snprintf(opening.base.path, sizeof(opening.base.path), "%s", given->files[0].paths[0]);
    if (pairs == NULL) {
        stk_array_set_free(given->beside);
        return stk_opening_refuse(&opening.base, STOKER_ENOMEM, "opening");
    }
    pairs->beside = given->beside;
    pairs->root = root_of(opening.base.storage);
    pairs->pixels_max = opening.base.pixels_max;
    int rc = STOKER_OK;
    for (uint32_t f = 0; rc == STOKER_OK && f < given->file_count; f++)
        rc = take_list(pairs, &opening, &given->files[f], given->count);
    if (rc == STOKER_OK)
        measure(pairs, &opening);
    return stk_opening_finish(&opening.base, rc, out, &files_ops, pairs);
}
