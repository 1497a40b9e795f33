/* tar.c - "tar:DIR/train-{000..099}.tar?channels=3": the images in tar archives, as WebDataset
 * writes them.
 *
 *   spec ──▶ names of archives ──▶ index ──▶ shape of a row ──▶ codec ──▶ callbacks
 *
 * The archives stay open; a sample is one read at an offset. An image of another shape is a bad
 * sample when it is read.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/formats.h"
#include "datasets/opening.h"
#include "datasets/tar/header.h"
#include "datasets/tar/index.h"
#include "loader/base/memory.h"

enum { ENTRIES_DEFAULT = 1 << 26, ENTRIES_MAX = 1 << 30, CLASSES_MAX = 65536 };

struct tar {
    struct stk_tar_index index;
    struct stk_image_decoder image;
    struct stk_image_row row;
    uint32_t longest_bytes; /* largest image within max_file_bytes */
    uint64_t pixels_max;    /* largest image that is resized */
    uint32_t class_count;   /* 0 = unknown */
};

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct tar *tar = self;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(stoker_dataset_info),
        .count = tar->index.count,
        .dtype = STOKER_DTYPE_UINT8,
        .rank = 3,
        .shape = { tar->row.shape.height, tar->row.shape.width, tar->row.shape.channels },
        .is_image = true,
        .pixels_max = tar->pixels_max,
        .label_dtype = tar->index.has_labels ? STOKER_DTYPE_INT64 : STOKER_DTYPE_NONE,
        .class_count = tar->class_count,
        .file_count = tar->index.file_count,
        .encoded_bytes_max = tar->longest_bytes,
        .sizes_differ = tar->row.sizes_differ,
        .description = tar->row.text[0] != '\0' ? tar->row.text : NULL,
    };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct tar *tar = self;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < tar->index.count);
        const struct stk_tar_sample *sample = &tar->index.samples[ids[i]];
        out[i] = (stoker_part){
            .extent = { .offset = sample->offset, .bytes = sample->bytes, .file = sample->file },
            .codec = &tar->image.codec,
        };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct tar *tar = self;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = tar->index.samples[ids[i]].label;
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct tar *tar = self;
    if (file >= tar->index.file_count)
        return STOKER_EINVAL;
    const struct stk_source *source = &tar->index.files[file].source;
    *out = (stoker_file){ .path = source->path, .fd = source->fd, .size = source->size };
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct tar *tar = self;
    stk_image_decoder_close(&tar->image);
    stk_tar_index_free(&tar->index);
    stk_free(tar);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "tar",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of,
                                        .destroy = destroy };

/* ---- what a row is -------------------------------------------------------------- */

/* Needed only while opening. */
struct opening {
    struct stk_opening base;
    struct stk_tar_wish wish;
    struct stk_tar_pattern pattern;
    char truncated[STK_PARAMETER_BYTES_MAX];
};

static uint64_t bytes_of(const void *self, uint64_t id)
{
    const struct tar *tar = self;
    return tar->index.samples[id].bytes;
}

static int probe(const void *self, uint64_t id, uint8_t *room, uint32_t bytes,
                 struct stk_image_shape *out, stoker_error *error)
{
    const struct tar *tar = self;
    const struct stk_tar_sample *sample = &tar->index.samples[id];
    const struct stk_source *source = &tar->index.files[sample->file].source;
    const struct stk_place place = stk_at(source->path, sample->offset);
    const int rc = stk_source_read(source, room, bytes, sample->offset, error);
    return rc == STOKER_OK ? stk_image_probe_at(&place, room, bytes, out, error) : rc;
}

static int choose_row(struct tar *tar, const struct opening *opening)
{
    const struct stk_survey_set set = { .self = tar,
                                        .path = opening->base.path,
                                        .count = tar->index.count,
                                        .bytes_max = opening->base.file_bytes_max,
                                        .bytes = bytes_of,
                                        .probe = probe };
    tar->pixels_max = opening->base.pixels_max;
    return stk_opening_choose_row(&opening->base, &set, &tar->row, &tar->image);
}

/* Set longest_bytes and, unless given, class_count: the largest label + 1, or 0 if a label is
 * negative or over CLASSES_MAX. */
static int look_at_samples(struct tar *tar, const struct opening *opening)
{
    int64_t largest = -1;
    bool numbered = tar->index.has_labels;
    tar->longest_bytes = 1;
    for (size_t i = 0; i < tar->index.count; i++) {
        const struct stk_tar_sample *sample = &tar->index.samples[i];
        if (sample->bytes > tar->longest_bytes && sample->bytes <= opening->base.file_bytes_max)
            tar->longest_bytes = sample->bytes;
        numbered = numbered && sample->label >= 0 && sample->label < CLASSES_MAX;
        largest = sample->label > largest ? sample->label : largest;
    }
    if (opening->wish.class_count != 0 && !tar->index.has_labels)
        return stk_opening_refuse(&opening->base, STOKER_EINVAL,
                                  "classes: the archives have no .cls members");
    tar->class_count = (uint32_t)opening->wish.class_count;
    if (opening->wish.class_count == 0 && numbered)
        tar->class_count = (uint32_t)largest + 1;
    return STOKER_OK;
}

/* ---- the spec ------------------------------------------------------------------- */

static int read_parameters(struct opening *opening)
{
    opening->wish.entries_max = ENTRIES_DEFAULT;
    const struct stk_parameter own[] = {
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
    return opening->wish.keep_truncated || opening->truncated[0] == '\0' ||
                   strcmp(opening->truncated, "fail") == 0
               ? STOKER_OK
               : stk_opening_refuse(&opening->base, STOKER_ESPEC, "truncated must be fail or keep");
}

/* A file name may contain question marks and braces: a name that exists literally is that file. */
static int read_spec(struct opening *opening, const char *rest)
{
    struct stat status;
    const struct stk_place place = STK_NOWHERE;
    const struct stk_spec spec = stk_spec_split(rest, '?');
    const size_t bytes = spec.name_bytes;
    if (bytes == 0)
        return stk_error_set(opening->base.error, STOKER_ESPEC, STOKER_STAGE_OPEN, &place,
                             "\"tar:\" names no archive");
    if (bytes >= sizeof(opening->base.path))
        return stk_error_set(opening->base.error, STOKER_ELIMIT, STOKER_STAGE_OPEN, &place,
                             "tar: the name is too long");
    memcpy(opening->base.path, rest, bytes);
    opening->base.parameters = spec.after == NULL ? "" : spec.after;
    const int rc = read_parameters(opening);
    if (rc != STOKER_OK)
        return rc;
    if (stat(opening->base.path, &status) != 0)
        return stk_tar_pattern_parse(&opening->pattern, opening->base.path, bytes,
                                     opening->base.error);
    stk_tar_pattern_plain(&opening->pattern, opening->base.path, bytes);
    return STOKER_OK;
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
    int rc =
        stk_tar_index_build(&tar->index, &opening->pattern, &opening->wish, opening->base.error);
    if (rc == STOKER_OK)
        rc = look_at_samples(tar, opening);
    if (rc == STOKER_OK)
        rc = choose_row(tar, opening);
    if (rc == STOKER_OK)
        rc = check_archives(tar, opening);
    return stk_opening_finish(&opening->base, rc, out, &ops, tar);
}

static int open_tar(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    const struct stk_place place = STK_NOWHERE;
    if (options->split != NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place,
                             "split \"%s\": tar names its archives and has no splits",
                             options->split);
    struct opening opening = { .base = STK_OPENING_INIT("tar", error),
                               .wish.bytes_max = options->max_bytes };
    const int rc = read_spec(&opening, rest);
    return rc == STOKER_OK ? open_archives(out, &opening) : rc;
}

/* Returns true for a file that starts with a tar header. */
static bool recognise_tar(const char *path)
{
    struct stk_source source;
    uint8_t block[STK_TAR_BLOCK_BYTES];
    if (stk_source_open(&source, path, NULL) != STOKER_OK)
        return false;
    const bool like = source.size >= sizeof(block) &&
                      stk_source_read(&source, block, sizeof(block), 0, NULL) == STOKER_OK &&
                      !stk_tar_block_is_end(block) && stk_tar_block_is_header(block);
    stk_source_close(&source);
    return like;
}

const struct stk_format stk_format_tar = { .name = "tar",
                                           .open = open_tar,
                                           .recognise = recognise_tar };
