/* tar.c - "tar:DIR/train-{000..099}.tar?fields=jpg,seg.png,txt,cls": samples in tar archives, as
 * WebDataset writes them.
 *
 *   spec ──▶ names of archives ──▶ index ──▶ shapes of images ──▶ codecs ──▶ callbacks
 *
 *   key.jpg  key.seg.png  key.txt  key.cls  __key__
 *   part 0   part 1       part 2   values() part 3, in memory
 *
 * The archives stay open; a part is one read at an offset. An image of another shape is a bad
 * sample when it is read.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/formats.h"
#include "datasets/member_fields.h"
#include "datasets/opening.h"
#include "datasets/tar/header.h"
#include "datasets/tar/index.h"
#include "loader/base/memory/memory.h"

enum { ENTRIES_DEFAULT = 1 << 26, ENTRIES_MAX = 1 << 30, CLASSES_MAX = 65536 };

/* A field of the samples. */
struct field {
    struct stk_member_field member;
    uint32_t part;                /* STOKER_NO_PART: the label */
    struct stk_image_codec image; /* images and masks */
    struct stk_image_row row;
    stoker_codec elements; /* the codec of big-endian arrays */
    uint64_t length_max;   /* bytes and keys: the longest */
};

struct tar {
    struct stk_tar_index index;
    struct field *fields; /* [field_count] */
    uint32_t field_count;
    uint32_t part_count;                            /* those of the index, then the key's */
    uint32_t key_part;                              /* STOKER_NO_PART: none */
    const stoker_codec *codecs[STK_TAR_FIELDS_MAX]; /* for each part of the index; NULL = raw */
    uint32_t longest_bytes;                         /* longest member within max_file_bytes */
    uint64_t pixels_max;                            /* largest image that is resized */
    uint32_t class_count;                           /* 0 = unknown */
};

/* Member `part` of a sample. */
static struct stk_tar_extent member_of(const struct stk_tar_index *index, uint64_t id,
                                       uint32_t part)
{
    const struct stk_tar_sample *sample = &index->samples[id];
    if (part == 0)
        return (struct stk_tar_extent){ .offset = sample->offset, .bytes = sample->bytes };
    return index->more[id * index->more_count + part - 1];
}

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct tar *tar = self;
    const char *found = tar->fields[0].row.text;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(*out),
        .count = tar->index.count,
        .field_count = tar->field_count,
        .part_count = tar->part_count,
        .file_count = tar->index.file_count,
        .encoded_bytes_max = tar->longest_bytes,
        .description = found[0] != '\0' ? found : NULL,
    };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct tar *tar = self;
    const struct field *field = &tar->fields[number];
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = field->member.name,
                                .dtype = STOKER_DTYPE_UINT8,
                                .part = field->part };
    switch (field->member.use) {
    case STK_MEMBER_IMAGE:
    case STK_MEMBER_MASK:
        out->kind =
            field->member.use == STK_MEMBER_MASK ? STOKER_FIELD_KIND_MASK : STOKER_FIELD_KIND_IMAGE;
        out->rank = 3;
        out->shape[0] = field->row.shape.height;
        out->shape[1] = field->row.shape.width;
        out->shape[2] = field->row.shape.channels;
        out->pixels_max = tar->pixels_max;
        out->sizes_differ = field->row.sizes_differ;
        break;
    case STK_MEMBER_ARRAY:
        stk_npy_shape_describe(&tar->index.shapes[field->part], out);
        break;
    case STK_MEMBER_LABEL:
        out->dtype = STOKER_DTYPE_INT64;
        out->class_count = tar->class_count;
        break;
    default:
        out->kind = STOKER_FIELD_KIND_BYTES;
        out->rank = 1;
        out->shape[0] = field->length_max;
        out->varies = true;
        break;
    }
    return STOKER_OK;
}

static stoker_part key_of(const struct tar *tar, uint64_t id)
{
    const uint64_t from = id == 0 ? 0 : tar->index.key_ends[id - 1];
    return (stoker_part){ .extent = { .memory = tar->index.keys + from,
                                      .bytes = (uint32_t)(tar->index.key_ends[id] - from) } };
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct tar *tar = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < tar->index.count);
        stoker_part *of = &parts[(size_t)i * tar->part_count];
        for (uint32_t part = 0; part <= tar->index.more_count; part++) {
            const struct stk_tar_extent member = member_of(&tar->index, ids[i], part);
            of[part] = (stoker_part){ .extent = { .offset = member.offset,
                                                  .bytes = member.bytes,
                                                  .file = tar->index.samples[ids[i]].file },
                                      .codec = tar->codecs[part] };
        }
        if (tar->key_part != STOKER_NO_PART)
            of[tar->key_part] = key_of(tar, ids[i]);
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct tar *tar = self;
    assert(tar->fields[field].member.use == STK_MEMBER_LABEL);
    (void)field;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = tar->index.samples[ids[i]].label;
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct tar *tar = self;
    if (file >= tar->index.file_count)
        return STOKER_EINVAL;
    *out = stk_source_file(&tar->index.files[file].source);
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct tar *tar = self;
    stk_free(tar->fields);
    stk_tar_index_free(&tar->index);
    stk_free(tar);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "tar",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy };

/* ---- images --------------------------------------------------------------------- */

/* Needed only while opening. */
struct opening {
    struct stk_opening base;
    struct stk_tar_wish wish;
    struct stk_name_list names;
    struct stk_member_fields fields;
    char truncated[STK_PARAMETER_BYTES_MAX];
    char list[STK_PARAMETER_BYTES_MAX];
};

/* The images of one field. */
struct survey {
    const struct stk_tar_index *index;
    uint32_t part;
};

static uint64_t bytes_of(const void *self, uint64_t id)
{
    const struct survey *survey = self;
    return member_of(survey->index, id, survey->part).bytes;
}

static int probe(const void *self, uint64_t id, uint8_t *room, uint32_t bytes,
                 struct stk_image_shape *out, stoker_error *error)
{
    const struct survey *survey = self;
    const struct stk_tar_extent member = member_of(survey->index, id, survey->part);
    const struct stk_source *source = &survey->index->files[survey->index->samples[id].file].source;
    const struct stk_place place = stk_at(source->path, member.offset);
    const int rc = stk_source_read(source, room, bytes, member.offset, error);
    return rc == STOKER_OK ? stk_image_probe_at(&place, room, bytes, out, error) : rc;
}

/* The shape of a field's rows: given by the parameters or found, but a mask has one channel. */
static int choose_row(const struct tar *tar, const struct opening *opening, struct field *field)
{
    const struct survey survey = { .index = &tar->index, .part = field->part };
    const struct stk_survey_set set = { .self = &survey,
                                        .path = opening->base.path,
                                        .count = tar->index.count,
                                        .bytes_max = opening->base.file_bytes_max,
                                        .far = stk_storage_is_far(opening->base.storage),
                                        .bytes = bytes_of,
                                        .probe = probe };
    struct stk_opening base = opening->base;
    if (field->member.use == STK_MEMBER_MASK) {
        base.channels = 1;
        base.mask = true;
    }
    return stk_opening_choose_row(&base, &set, &field->row, &field->image);
}

/* The codecs of images, masks, and arrays that are big-endian; other parts are the field as they
 * are. */
static int choose_codecs(struct tar *tar, const struct opening *opening)
{
    int rc = STOKER_OK;
    tar->pixels_max = opening->base.pixels_max;
    for (uint32_t i = 0; rc == STOKER_OK && i < tar->field_count; i++) {
        struct field *field = &tar->fields[i];
        const enum stk_member_use use = field->member.use;
        if (use == STK_MEMBER_ARRAY && tar->index.shapes[field->part].big_endian) {
            field->elements = stk_npy_elements_codec(&tar->index.shapes[field->part]);
            tar->codecs[field->part] = &field->elements;
        }
        if (use != STK_MEMBER_IMAGE && use != STK_MEMBER_MASK)
            continue;
        rc = choose_row(tar, opening, field);
        tar->codecs[field->part] = &field->image.codec;
    }
    return rc;
}

/* ---- samples -------------------------------------------------------------------- */

/* Set length_max of bytes and keys, and longest_bytes. */
static void measure_members(struct tar *tar, const struct opening *opening)
{
    tar->longest_bytes = 1;
    for (uint32_t i = 0; i < tar->field_count; i++) {
        struct field *field = &tar->fields[i];
        field->length_max = 1;
        for (uint64_t id = 0; field->part != STOKER_NO_PART && id < tar->index.count; id++) {
            const bool key = field->part == tar->key_part;
            const uint32_t bytes = key ? (uint32_t)key_of(tar, id).extent.bytes
                                       : member_of(&tar->index, id, field->part).bytes;
            if (bytes > opening->base.file_bytes_max)
                continue;
            field->length_max = bytes > field->length_max ? bytes : field->length_max;
            if (!key && bytes > tar->longest_bytes)
                tar->longest_bytes = bytes;
        }
    }
}

/* Set class_count unless it is given: the largest label + 1, or 0 if a label is negative or over
 * CLASSES_MAX. */
static int count_classes(struct tar *tar, const struct opening *opening)
{
    int64_t largest = -1;
    bool numbered = tar->index.has_labels;
    for (size_t i = 0; i < tar->index.count; i++) {
        const int64_t label = tar->index.samples[i].label;
        numbered = numbered && label >= 0 && label < CLASSES_MAX;
        largest = label > largest ? label : largest;
    }
    if (opening->wish.class_count != 0 && !tar->index.has_labels)
        return stk_opening_refuse(&opening->base, STOKER_EINVAL,
                                  "classes: the archives have no .cls members");
    tar->class_count = (uint32_t)opening->wish.class_count;
    if (opening->wish.class_count == 0 && numbered)
        tar->class_count = (uint32_t)largest + 1;
    return STOKER_OK;
}

/* The fields, now that it is known whether there are labels. */
static int make_fields(struct tar *tar, const struct opening *opening)
{
    const struct stk_member_fields *wanted = &opening->fields;
    tar->fields = stk_calloc(wanted->count, sizeof(*tar->fields));
    if (tar->fields == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the fields");
    tar->key_part = STOKER_NO_PART;
    for (uint32_t i = 0; i < wanted->count; i++) {
        const enum stk_member_use use = wanted->at[i].use;
        struct field *field = &tar->fields[tar->field_count];
        if (use == STK_MEMBER_LABEL && !tar->index.has_labels)
            continue;
        tar->field_count++;
        field->member = wanted->at[i];
        field->part =
            use == STK_MEMBER_LABEL || use == STK_MEMBER_KEY ? STOKER_NO_PART : tar->part_count++;
    }
    for (uint32_t i = 0; i < tar->field_count; i++)
        if (tar->fields[i].member.use == STK_MEMBER_KEY)
            tar->key_part = tar->fields[i].part = tar->part_count++;
    return STOKER_OK;
}

/* ---- the spec ------------------------------------------------------------------- */

/* What the index must collect for the fields. */
static int wish_for_fields(struct opening *opening)
{
    struct stk_tar_wish *wish = &opening->wish;
    const char *what = NULL;
    const char *item = "";
    int item_bytes = 0;
    wish->complete = wish->needs_labels = opening->list[0] != '\0';
    if (!wish->complete)
        stk_member_fields_default(&opening->fields);
    else if (stk_member_fields_parse(&opening->fields, opening->list, &what, &item, &item_bytes) !=
             STOKER_OK) {
        return stk_refuse_spec(opening->base.error, STOKER_ESPEC, "tar: fields: \"%.*s\": %s",
                               item_bytes, item, what);
    }
    for (uint32_t i = 0; i < opening->fields.count; i++) {
        const struct stk_member_field *field = &opening->fields.at[i];
        wish->takes_labels = wish->takes_labels || field->use == STK_MEMBER_LABEL;
        wish->takes_keys = wish->takes_keys || field->use == STK_MEMBER_KEY;
        if (field->use != STK_MEMBER_LABEL && field->use != STK_MEMBER_KEY)
            wish->fields[wish->field_count++] =
                (struct stk_tar_field){ .extensions = field->extensions,
                                        .is_array = field->use == STK_MEMBER_ARRAY };
    }
    wish->needs_labels = wish->needs_labels && wish->takes_labels;
    return wish->field_count > 0
               ? STOKER_OK
               : stk_opening_refuse(&opening->base, STOKER_ESPEC,
                                    "fields: one of them must be a member other than cls");
}

static int read_parameters(struct opening *opening)
{
    opening->wish.entries_max = ENTRIES_DEFAULT;
    const struct stk_parameter own[] = {
        { .key = "fields", .text = opening->list },
        { .key = "classes", .number = &opening->wish.class_count, .least = 1, .most = CLASSES_MAX },
        { .key = "max_entries",
          .number = &opening->wish.entries_max,
          .least = 1,
          .most = ENTRIES_MAX },
        { .key = "truncated", .text = opening->truncated },
    };
    const int rc = stk_opening_parameters(&opening->base, true, own, sizeof(own) / sizeof(own[0]));
    if (rc != STOKER_OK)
        return rc;
    opening->wish.keep_truncated = strcmp(opening->truncated, "keep") == 0;
    if (!opening->wish.keep_truncated && opening->truncated[0] != '\0' &&
        strcmp(opening->truncated, "fail") != 0)
        return stk_opening_refuse(&opening->base, STOKER_ESPEC, "truncated must be fail or keep");
    return wish_for_fields(opening);
}

/* A file name may contain question marks and braces: a name that exists literally is that file. */
static int read_spec(struct opening *opening, const char *rest)
{
    const struct stk_spec spec = stk_spec_split(opening->base.storage, rest, '?');
    const size_t bytes = spec.name_bytes;
    if (bytes >= sizeof(opening->base.path))
        return stk_refuse_spec(opening->base.error, STOKER_ELIMIT, "tar: the name is too long");
    memcpy(opening->base.path, rest, bytes);
    opening->base.parameters = spec.after == NULL ? "" : spec.after;
    const int rc = read_parameters(opening);
    if (rc != STOKER_OK)
        return rc;
    return stk_name_list_make(&opening->names, opening->base.storage, "tar", opening->base.path,
                              bytes, opening->base.error);
}

/* ---- open ----------------------------------------------------------------------- */

/* Reading the headers of large archives takes long: check that they did not change meanwhile. */
static int check_archives(const struct tar *tar, const struct opening *opening)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < tar->index.file_count && rc == STOKER_OK; i++)
        rc = stk_source_check(&tar->index.files[i].source, opening->base.error);
    return rc;
}

static int open_archives(stoker_dataset **out, const struct opening *opening)
{
    struct tar *tar = stk_calloc(1, sizeof(*tar));
    if (tar == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    int rc = stk_tar_index_build(&tar->index, &opening->names, &opening->wish, opening->base.error);
    if (rc == STOKER_OK)
        rc = make_fields(tar, opening);
    if (rc == STOKER_OK)
        rc = count_classes(tar, opening);
    if (rc == STOKER_OK)
        measure_members(tar, opening);
    if (rc == STOKER_OK)
        rc = choose_codecs(tar, opening);
    if (rc == STOKER_OK)
        rc = check_archives(tar, opening);
    return stk_opening_finish(&opening->base, rc, out, &ops, tar);
}

static int open_tar(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    if (options->split != NULL)
        return stk_refuse_spec(error, STOKER_EINVAL,
                               "split \"%s\": tar names its archives and has no splits",
                               options->split);
    struct opening opening = { .base = STK_OPENING_INIT("tar", options->storage, error),
                               .wish = { .storage = options->storage,
                                         .bytes_max = options->max_bytes } };
    int rc = read_spec(&opening, rest);
    if (rc == STOKER_OK)
        rc = open_archives(out, &opening);
    stk_name_list_free(&opening.names);
    return rc;
}

/* Returns true for a file that starts with a tar header. */
static bool recognize_tar(const stoker_storage *storage, const char *path)
{
    uint8_t block[STK_TAR_BLOCK_BYTES];
    return stk_source_begins(storage, path, block, sizeof(block)) && !stk_tar_block_is_end(block) &&
           stk_tar_block_is_header(block);
}

const struct stk_format stk_format_tar = { .name = "tar",
                                           .about =
                                               "tar:FILE\tsamples in archives, as of WebDataset",
                                           .open = open_tar,
                                           .recognize = recognize_tar };
