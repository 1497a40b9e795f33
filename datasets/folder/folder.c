/* folder.c - "folder:DIR?channels=3": image files, a folder a class.
 *
 *   spec ──▶ root ──▶ index or scan ──▶ tree ──▶ shape of a row ──▶ codec ──▶ callbacks
 *
 * No file stays open. If the spec does not give the shape of a row, image headers are read at open
 * (image_survey.h); raw rows have the size of most raw files. A file of another shape or size, or
 * one that is not an image, is a bad sample when it is read.
 */
#include <assert.h>
#include <string.h>

#include "datasets/folder/index.h"
#include "datasets/folder/pairs.h"
#include "datasets/folder/tree.h"
#include "datasets/formats.h"
#include "datasets/label_column.h"
#include "datasets/opening.h"
#include "datasets/source.h"
#include "loader/codec/kinds.h"

enum {
    ROW_BYTES_MAX = 1 << 30,
    LOOK_FOLDERS = 256, /* entries read to recognize a plain path */
    LOOK_FILES = 64
};

struct folder {
    struct stk_folder_tree tree;
    struct stk_image_codec image; /* all 0: all files are raw */
    struct stk_image_row row;     /* all 0: all files are raw */
    struct stk_image_shape shape; /* height 0: rows are raw bytes, not images */
    uint32_t row_bytes;           /* size of a raw row */
    uint32_t longest_bytes;       /* largest file within max_file_bytes */
    uint64_t pixels_max;          /* largest image that is resized */
    struct stk_storage_folder root;
    char *path; /* the root folder */
    struct stk_label_column column;
};

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct folder *folder = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = folder->tree.file_count,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { folder->row_bytes },
                                  .label_dtype = STOKER_DTYPE_INT64,
                                  .class_count = (uint32_t)folder->tree.class_count,
                                  .file_count = folder->root.fd >= 0 ? 0 : 1,
                                  .encoded_bytes_max = folder->longest_bytes,
                                  .has_paths = true,
                                  .directory = folder->root.fd >= 0 ? folder->root.fd
                                                                    : STOKER_DIRECTORY_OF_FILE };
    if (folder->shape.height == 0)
        return STOKER_OK;
    out->rank = 3;
    out->is_image = true;
    out->pixels_max =
        (folder->image.codec.flags & STOKER_CODEC_ANY_SIZE) != 0 ? folder->pixels_max : 0;
    out->shape[0] = folder->shape.height;
    out->shape[1] = folder->shape.width;
    out->shape[2] = folder->shape.channels;
    out->sizes_differ = folder->row.sizes_differ;
    out->description = folder->row.text[0] != '\0' ? folder->row.text : NULL;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct folder *folder = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < folder->tree.file_count);
        const struct stk_folder_file *file = &folder->tree.files[ids[i]];
        const bool raw = (file->kind_label & STK_FOLDER_RAW) != 0;
        out[i] = (stoker_part){
            .extent = { .path = folder->tree.names + file->path, .bytes = file->bytes },
            .codec = raw ? NULL : &folder->image.codec,
            .version = folder->tree.versions != NULL ? folder->tree.versions[ids[i]] : 0,
        };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct folder *folder = self;
    if (stk_label_column_take(&folder->column, ids, count, out))
        return STOKER_OK;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = stk_folder_label(&folder->tree.files[ids[i]]);
    return STOKER_OK;
}

/* The root, of a storage without descriptors. */
static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    (void)file;
    const struct folder *folder = self;
    *out = stk_storage_folder_file(&folder->root);
    return STOKER_OK;
}

/* Only the label has classes. */
static const char *class_name(const void *self, uint32_t field, uint32_t index)
{
    (void)field;
    const struct folder *folder = self;
    return folder->tree.names + folder->tree.classes[index];
}

static void destroy(void *self)
{
    struct folder *folder = self;
    stk_folder_tree_free(&folder->tree);
    stk_label_column_free(&folder->column);
    stk_storage_leave(&folder->root);
    stk_free(folder->path);
    stk_free(folder);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "folder",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy,
                                        .class_name = class_name };

/* ---- what a row is -------------------------------------------------------------- */

/* Needed only while opening. */
struct opening {
    struct stk_opening base;
    struct stk_folder_wish wish;
    char extensions[STK_PARAMETER_BYTES_MAX];
    char index[STK_PARAMETER_BYTES_MAX];
};

static uint64_t bytes_of(const void *self, uint64_t id)
{
    const struct folder *folder = self;
    return folder->tree.files[id].bytes;
}

static const char *path_of(const void *self, uint64_t id)
{
    const struct folder *folder = self;
    return folder->tree.names + folder->tree.files[id].path;
}

static int probe(const void *self, uint64_t id, uint8_t *room, uint32_t bytes,
                 struct stk_image_shape *out, stoker_error *error)
{
    const struct folder *folder = self;
    const struct stk_place place = stk_at(path_of(self, id), STOKER_NO_OFFSET);
    const stoker_file root = stk_storage_folder_file(&folder->root);
    const uint64_t version = folder->tree.versions != NULL ? folder->tree.versions[id] : 0;
    const ssize_t got =
        stk_storage_read_beneath(&root, place.path, version, room, bytes, 0, &place, error);
    if (got < 0)
        return (int)got;
    return stk_image_probe_at(&place, room, (size_t)got, out, error);
}

/* A summary of the files' sizes. */
struct sizes {
    uint64_t images;        /* image files */
    uint64_t raw;           /* raw files */
    uint64_t raw_allowed;   /* raw files of 1..max_file_bytes bytes */
    uint32_t raw_bytes;     /* size of more than half of these; 0 = no such size */
    uint32_t longest_bytes; /* largest file within max_file_bytes, at least 1 */
};

static bool is_raw(const struct stk_folder_file *file)
{
    return (file->kind_label & STK_FOLDER_RAW) != 0;
}

static bool is_allowed_raw(const struct stk_folder_file *file, const struct opening *opening)
{
    return is_raw(file) && file->bytes > 0 && file->bytes <= opening->base.file_bytes_max;
}

/* Boyer and Moore's majority vote: if more than half of the files have one size, it survives; a
 * second pass counts the survivor. Needs no memory. */
static uint32_t majority_bytes(const struct folder *folder, const struct opening *opening,
                               uint64_t voters)
{
    const struct stk_folder_tree *tree = &folder->tree;
    uint32_t candidate = 0;
    int64_t votes = 0;
    for (uint64_t i = 0; i < tree->file_count; i++) {
        if (!is_allowed_raw(&tree->files[i], opening))
            continue;
        if (votes == 0)
            candidate = tree->files[i].bytes;
        votes += tree->files[i].bytes == candidate ? 1 : -1;
    }
    uint64_t count = 0;
    for (uint64_t i = 0; votes > 0 && i < tree->file_count; i++)
        count += is_allowed_raw(&tree->files[i], opening) && tree->files[i].bytes == candidate;
    return count > voters / 2 ? candidate : 0;
}

static struct sizes look_at_sizes(const struct folder *folder, const struct opening *opening)
{
    struct sizes sizes = { .longest_bytes = 1 };
    for (uint64_t i = 0; i < folder->tree.file_count; i++) {
        const struct stk_folder_file *file = &folder->tree.files[i];
        sizes.images += is_raw(file) ? 0 : 1;
        sizes.raw += is_raw(file) ? 1 : 0;
        sizes.raw_allowed += is_allowed_raw(file, opening) ? 1 : 0;
        if (file->bytes > sizes.longest_bytes && file->bytes <= opening->base.file_bytes_max)
            sizes.longest_bytes = file->bytes;
    }
    if (sizes.raw_allowed > 0)
        sizes.raw_bytes = majority_bytes(folder, opening, sizes.raw_allowed);
    return sizes;
}

static int choose_image_shape(struct folder *folder, const struct opening *opening)
{
    const struct stk_survey_set set = { .self = folder,
                                        .path = opening->base.path,
                                        .count = folder->tree.file_count,
                                        .bytes_max = opening->base.file_bytes_max,
                                        .far = stk_storage_is_far(opening->base.storage),
                                        .bytes = bytes_of,
                                        .probe = probe,
                                        .name = path_of };
    const int rc = stk_opening_choose_row(&opening->base, &set, &folder->row, &folder->image);
    folder->shape = folder->row.shape;
    folder->pixels_max = opening->base.pixels_max;
    return rc;
}

/* Rows of raw bytes: the size in the spec, or that of most files. */
static int choose_raw_row(struct folder *folder, const struct opening *opening,
                          const struct sizes *sizes)
{
    const uint64_t row_bytes = opening->base.height * opening->base.width * opening->base.channels;
    if (row_bytes > ROW_BYTES_MAX)
        return stk_opening_refuse(&opening->base, STOKER_ELIMIT,
                                  "height x width x channels is more than 1 GiB");
    folder->shape =
        (struct stk_image_shape){ (uint32_t)opening->base.height, (uint32_t)opening->base.width,
                                  (uint32_t)opening->base.channels };
    folder->row_bytes = row_bytes > 0 ? (uint32_t)row_bytes : sizes->raw_bytes;
    if (folder->row_bytes > 0)
        return STOKER_OK;
    if (sizes->raw_allowed == 0)
        return stk_opening_refuse(&opening->base, STOKER_ELIMIT,
                                  "every raw file is empty or longer than max_file_bytes");
    return stk_opening_refuse(
        &opening->base, STOKER_EFORMAT,
        "no size is shared by more than half of the raw files: give height, width and "
        "channels");
}

/* Choose shape and codec of a row. */
static int choose_row(struct folder *folder, const struct opening *opening)
{
    const int given =
        (opening->base.height != 0) + (opening->base.width != 0) + (opening->base.channels != 0);
    const struct sizes sizes = look_at_sizes(folder, opening);
    folder->longest_bytes = sizes.longest_bytes;
    if (sizes.raw > 0 && given != 3 && (sizes.images > 0 || given != 0))
        return stk_opening_refuse(&opening->base, STOKER_EINVAL,
                                  "raw files need all of height, width and channels, or none");
    return sizes.images > 0 ? choose_image_shape(folder, opening)
                            : choose_raw_row(folder, opening, &sizes);
}

/* ---- the spec ------------------------------------------------------------------- */

/* ".PNG,jpg" becomes "png,jpg". */
static int take_extensions(struct opening *opening)
{
    if (opening->extensions[0] == '\0')
        stk_kind_list_extensions(',', opening->extensions, sizeof(opening->extensions));
    const char *from = opening->extensions;
    char *to = opening->wish.extensions;
    size_t used = 0;
    for (bool begins = true; *from != '\0'; from++) {
        const bool dot = *from == '.';
        if (dot && begins)
            continue;
        if (used + 1 == STK_FOLDER_EXTENSIONS_BYTES || dot || *from == '/' ||
            (begins && *from == ','))
            return stk_opening_refuse(&opening->base, STOKER_ESPEC,
                                      "extensions must have the form png,jpg");
        begins = *from == ',';
        to[used++] = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;
    }
    if (used == 0 || to[used - 1] == ',')
        return stk_opening_refuse(&opening->base, STOKER_ESPEC,
                                  "extensions must have the form png,jpg");
    to[used] = '\0';
    return STOKER_OK;
}

static int read_parameters(struct opening *opening)
{
    const struct stk_parameter own[] = { { .key = "extensions", .text = opening->extensions },
                                         { .key = "index", .text = opening->index } };
    const int rc = stk_opening_parameters(&opening->base, true, own, sizeof(own) / sizeof(own[0]));
    return rc == STOKER_OK ? take_extensions(opening) : rc;
}

/* ---- open ----------------------------------------------------------------------- */

static int open_root(struct folder *folder, struct opening *opening)
{
    const size_t bytes = strlen(opening->base.path) + 1;
    folder->root = (struct stk_storage_folder)STK_STORAGE_FOLDER_CLOSED;
    folder->path = stk_calloc(bytes, 1);
    if (folder->path == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "its path");
    memcpy(folder->path, opening->base.path, bytes);
    opening->wish.root = &folder->root;
    return stk_storage_enter(&folder->root, opening->base.storage, folder->path,
                             opening->base.error);
}

static int64_t label_of(const void *self, uint64_t id)
{
    const struct folder *folder = self;
    return stk_folder_label(&folder->tree.files[id]);
}

static int find_files(struct folder *folder, const struct opening *opening)
{
    const bool keeps = opening->index[0] != '\0';
    if (keeps && folder->root.fd < 0)
        return stk_opening_refuse(&opening->base, STOKER_ENOTSUP,
                                  "index: only of local folders, whose times it compares");
    if (keeps && stk_folder_index_load(&folder->tree, &opening->wish, opening->index))
        return STOKER_OK;
    int rc = stk_folder_scan(&folder->tree, &opening->wish, opening->base.error);
    if (rc == STOKER_OK && keeps)
        rc = stk_folder_index_save(&folder->tree, &opening->wish, opening->index,
                                   opening->base.error);
    return rc;
}

static int open_tree(stoker_dataset **out, struct opening *opening)
{
    struct folder *folder = stk_calloc(1, sizeof(*folder));
    if (folder == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    int rc = open_root(folder, opening);
    if (rc == STOKER_OK)
        rc = find_files(folder, opening);
    if (rc == STOKER_OK)
        rc = choose_row(folder, opening);
    if (rc == STOKER_OK &&
        stk_label_column_make(&folder->column, folder->tree.file_count, label_of, folder) < 0)
        rc = stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the labels");
    return stk_opening_finish(&opening->base, rc, out, &ops, folder);
}

static int open_folder(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    if (stk_folder_pairs_named(options->storage, rest))
        return stk_folder_pairs_open(out, rest, options, error);
    struct opening opening = { .base = STK_OPENING_INIT("folder", options->storage, error),
                               .wish.bytes_max = options->max_bytes };
    int rc = stk_opening_folder(&opening.base, rest, options->split);
    if (rc == STOKER_OK)
        rc = read_parameters(&opening);
    return rc == STOKER_OK ? open_tree(out, &opening) : rc;
}

/* ---- a plain path --------------------------------------------------------------- */

static bool is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && name[0] != '.' && stk_kind_of_extension(dot + 1) != STK_SHARD_RAW;
}

/* The search of recognize(): it ends at the first image, or after some entries. */
struct look {
    const struct stk_storage_folder *root;
    int left;
};

static int look_for_image(void *context, struct stk_listed *entry)
{
    struct look *look = context;
    if (is_image_name(entry->object.name))
        return STOKER_FINISHED;
    return --look->left > 0 ? STOKER_OK : STOKER_EPOCH_END;
}

/* Look for an image among the first entries of a subfolder. Follows no links. */
static int look_into(void *context, struct stk_listed *entry)
{
    struct look *look = context;
    struct look inside = { .left = LOOK_FILES };
    const bool folder = entry->object.kind == STOKER_OBJECT_KIND_FOLDER || entry->may_be_folder;
    if (entry->object.name[0] != '.' && folder &&
        stk_storage_list(look->root, entry->object.name, "", look_for_image, &inside, NULL) ==
            STOKER_FINISHED)
        return STOKER_FINISHED;
    return --look->left > 0 ? STOKER_OK : STOKER_EPOCH_END;
}

/* Returns true for a folder with images in one of its first subfolders. */
static bool recognize_folder(const stoker_storage *storage, const char *path)
{
    struct stk_storage_folder root;
    struct look look = { .root = &root, .left = LOOK_FOLDERS };
    if (stk_storage_enter(&root, storage, path, NULL) != STOKER_OK)
        return false;
    const int rc = stk_storage_list(&root, ".", "", look_into, &look, NULL);
    stk_storage_leave(&root);
    return rc == STOKER_FINISHED;
}

const struct stk_format stk_format_folder = {
    .name = "folder",
    .about = "folder:DIR\timage files, one folder per class\nfolder:image=DIR,mask=DIR\tflat "
             "folders of files, one per field",
    .open = open_folder,
    .recognize = recognize_folder
};
