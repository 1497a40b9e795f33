/* tar_index.c - see tar_index.h.
 *
 *   archive ──walk──▶ members ──by key──▶ groups ──all members seen──▶ samples
 *
 * Nothing is ever extracted: of a label's file a few bytes are read, of all else the place is kept.
 * Members that could do harm if they were (links, devices, names that lead out) are counted and
 * stepped over.
 */
#include "datasets/tar_index.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "datasets/tar_groups.h"
#include "datasets/tar_walk.h"
#include "loader/base/memory.h"

enum { LABEL_BYTES_MAX = 32, SHOWN_BYTES = 120 };

/* What is needed while indexing only. */
struct indexing {
    struct stk_tar_index *index;
    const struct stk_tar_wish *wish;
    struct stk_tar_groups groups;
    const struct stk_source *source; /* the archive at work */
    uint32_t file;
    size_t last_group; /* the one touched last */
    uint64_t labelled; /* samples with a label, and without */
    uint64_t unlabelled;
    char first_unlabelled[SHOWN_BYTES + 1];
    stoker_error *error;
};

#define FAIL(indexing, code, offset, ...)                                                          \
    stk_error_set((indexing)->error, code, STOKER_STAGE_OPEN,                                      \
                  &(struct stk_place){ (indexing)->source->path, offset, STOKER_NO_SAMPLE, 0 },    \
                  __VA_ARGS__)

/* ---- names ---------------------------------------------------------------------- */

/* Names are shown by their ends: that is where they differ. */
static const char *shown(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes > SHOWN_BYTES ? name + (bytes - SHOWN_BYTES) : name;
}

static const char *without_dot_slash(const char *name)
{
    while (name[0] == '.' && name[1] == '/') {
        name += 2;
        while (name[0] == '/')
            name++;
    }
    return name;
}

static bool is_stray(const char *name)
{
    if (name[0] == '/')
        return true;
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += part[0] == '/' ? 1 : 0;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

/* What stands behind the first dot of the last part; NULL if there is no key in front of it. */
static const char *field_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash == NULL ? name : slash + 1;
    const char *dot = strchr(base, '.');
    return dot == NULL || dot == base || dot[1] == '\0' ? NULL : dot + 1;
}

/* The field's own spelling, or NULL: no image. */
static const char *image_field(const char *field)
{
    static const char *const fields[] = { "png", "jpg", "jpeg" };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcasecmp(field, fields[i]) == 0)
            return fields[i];
    return NULL;
}

/* ---- fields --------------------------------------------------------------------- */

static int take_image(struct indexing *in, const struct stk_tar_member *member,
                      struct stk_tar_group *group, const char *field)
{
    if (group->image_at != STK_TAR_NONE)
        return FAIL(in, STOKER_EFORMAT, member->offset,
                    "tar: %s is a second image of its key: its .%s is at byte %llu",
                    shown(member->name), group->image_field, (unsigned long long)group->image_at);
    group->image_at = member->offset;
    group->image_bytes = member->bytes < UINT32_MAX ? (uint32_t)member->bytes : UINT32_MAX;
    group->image_field = field;
    return STOKER_OK;
}

/* Decimal, a minus in front perhaps, spaces and line ends behind. */
static bool read_label(const uint8_t *at, size_t bytes, int64_t *out)
{
    const bool negative = bytes > 0 && at[0] == '-';
    const size_t begin = negative ? 1 : 0;
    int64_t number = 0; /* negative while it grows: that reaches further */
    size_t i = begin;
    for (; i < bytes && at[i] >= '0' && at[i] <= '9'; i++)
        if (__builtin_mul_overflow(number, (int64_t)10, &number) ||
            __builtin_sub_overflow(number, (int64_t)(at[i] - '0'), &number))
            return false;
    if (i == begin || (!negative && number == INT64_MIN))
        return false;
    for (; i < bytes; i++)
        if (at[i] != ' ' && at[i] != '\t' && at[i] != '\r' && at[i] != '\n')
            return false;
    *out = negative ? number : -number;
    return true;
}

static int take_label(struct indexing *in, struct stk_tar_walk *walk,
                      const struct stk_tar_member *member, struct stk_tar_group *group)
{
    const uint64_t classes = in->wish->class_count;
    const uint8_t *text = NULL;
    if (group->label_at != STK_TAR_NONE)
        return FAIL(in, STOKER_EFORMAT, member->offset,
                    "tar: %s is a second label of its key: another .cls is at byte %llu",
                    shown(member->name), (unsigned long long)group->label_at);
    if (member->bytes > LABEL_BYTES_MAX)
        return FAIL(in, STOKER_EFORMAT, member->offset, "tar: %s: a label of %llu bytes",
                    shown(member->name), (unsigned long long)member->bytes);
    int rc = stk_tar_walk_read(walk, member->offset, (size_t)member->bytes, &text, in->error);
    if (rc != STOKER_OK)
        return rc;
    if (!read_label(text, (size_t)member->bytes, &group->label))
        return FAIL(in, STOKER_EFORMAT, member->offset,
                    "tar: %s: a label is a decimal number of 64 bits", shown(member->name));
    if (classes != 0 && (group->label < 0 || (uint64_t)group->label >= classes))
        return FAIL(in, STOKER_EFORMAT, member->offset,
                    "tar: %s: the label %lld is none of %llu classes", shown(member->name),
                    (long long)group->label, (unsigned long long)classes);
    group->label_at = member->offset;
    return STOKER_OK;
}

static int take_file(struct indexing *in, struct stk_tar_walk *walk, struct stk_tar_member *member)
{
    struct stk_tar_counts *counts = &in->index->counts;
    struct stk_tar_group *group = NULL;
    const char *field = field_of(member->name);
    const char *image = field == NULL ? NULL : image_field(field);
    if (field == NULL) {
        counts->keyless++;
        return STOKER_OK;
    }
    if (image == NULL && strcasecmp(field, "cls") != 0) {
        counts->other_files++;
        return STOKER_OK;
    }
    const size_t key_bytes = (size_t)(field - 1 - member->name);
    int rc = stk_tar_groups_find(&in->groups, member->name, key_bytes, &group);
    if (rc != STOKER_OK)
        return FAIL(in, rc, member->header_at, "tar: the index, of at most %llu bytes",
                    (unsigned long long)in->wish->bytes_max);
    in->last_group = (size_t)(group - in->groups.at);
    return image != NULL ? take_image(in, member, group, image)
                         : take_label(in, walk, member, group);
}

static int take_member(struct indexing *in, struct stk_tar_walk *walk,
                       struct stk_tar_member *member)
{
    struct stk_tar_counts *counts = &in->index->counts;
    if (counts->members++ == in->wish->entries_max)
        return FAIL(in, STOKER_ELIMIT, member->header_at, "tar: more than %llu members",
                    (unsigned long long)in->wish->entries_max);
    switch (member->kind) {
    case STK_TAR_DIRECTORY:
        counts->directories++;
        return STOKER_OK;
    case STK_TAR_LINK:
        counts->links++;
        return STOKER_OK;
    case STK_TAR_DEVICE:
        counts->devices++;
        return STOKER_OK;
    case STK_TAR_OTHER:
        counts->unknown++;
        return STOKER_OK;
    default:
        assert(member->kind == STK_TAR_FILE);
    }
    member->name = without_dot_slash(member->name);
    if (is_stray(member->name)) {
        counts->strays++;
        return STOKER_OK;
    }
    return take_file(in, walk, member);
}

/* ---- from groups to samples ----------------------------------------------------- */

static int append(struct indexing *in, const struct stk_tar_group *group)
{
    struct stk_tar_index *index = in->index;
    if (index->count == index->capacity) {
        void *array = index->samples;
        int rc = stk_tar_grow(&array, sizeof(index->samples[0]), index->count, &index->capacity,
                              &index->bytes, in->wish->bytes_max);
        index->samples = array;
        if (rc != STOKER_OK)
            return FAIL(in, rc, STOKER_NO_OFFSET, "tar: the index, of at most %llu bytes",
                        (unsigned long long)in->wish->bytes_max);
    }
    index->samples[index->count++] = (struct stk_tar_sample){
        .offset = group->image_at,
        .bytes = group->image_bytes,
        .file = in->file,
        .label = group->label_at != STK_TAR_NONE ? group->label : 0,
    };
    return STOKER_OK;
}

static int take_groups(struct indexing *in, bool cut)
{
    struct stk_tar_counts *counts = &in->index->counts;
    for (size_t i = 0; i < in->groups.count; i++) {
        const struct stk_tar_group *group = &in->groups.at[i];
        const bool labelled = group->label_at != STK_TAR_NONE;
        const bool has_image = group->image_at != STK_TAR_NONE;
        if (cut && i == in->last_group && !(labelled && has_image)) {
            counts->cut_samples++; /* what else it had may be what is missing */
            continue;
        }
        counts->imageless += has_image ? 0 : 1;
        if (!has_image)
            continue;
        if (!labelled && in->unlabelled == 0)
            (void)snprintf(in->first_unlabelled, sizeof(in->first_unlabelled), "%.*s",
                           (int)(group->key_bytes < SHOWN_BYTES ? group->key_bytes : SHOWN_BYTES),
                           in->groups.keys + group->key);
        in->labelled += labelled ? 1 : 0;
        in->unlabelled += labelled ? 0 : 1;
        int rc = append(in, group);
        if (rc != STOKER_OK)
            return rc;
        if (in->labelled > 0 && in->unlabelled > 0)
            return FAIL(in, STOKER_EMISMATCH, STOKER_NO_OFFSET,
                        "tar: some samples have a .cls, but %s has none", in->first_unlabelled);
    }
    return STOKER_OK;
}

/* ---- archives ------------------------------------------------------------------- */

static int walk_archive(struct indexing *in, struct stk_tar_walk *walk)
{
    struct stk_tar_member member = { .kind = STK_TAR_FILE };
    stoker_error cut = { .code = 0 };
    int rc = STOKER_OK;
    stk_tar_groups_clear(&in->groups);
    in->last_group = SIZE_MAX;
    while (rc == STOKER_OK) {
        rc = stk_tar_walk_next(walk, &member, &cut);
        if (rc == STOKER_ETRUNCATED && in->wish->keep_truncated) {
            in->index->counts.cut++;
            return take_groups(in, true);
        }
        if (rc != STOKER_OK && in->error != NULL)
            *in->error = cut;
        if (rc == STOKER_OK && member.kind == STK_TAR_END)
            return take_groups(in, false);
        if (rc == STOKER_OK)
            rc = take_member(in, walk, &member);
    }
    return rc;
}

static int index_file(struct indexing *in, const char *name, size_t name_bytes)
{
    struct stk_tar_file *file = &in->index->files[in->file];
    struct stk_tar_walk *walk = NULL;
    const struct stk_place place = stk_at(name, STOKER_NO_OFFSET);
    file->path = stk_calloc(name_bytes + 1, 1);
    if (file->path == NULL)
        return stk_error_set(in->error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "tar: the path");
    memcpy(file->path, name, name_bytes);
    file->source = (struct stk_source)STK_SOURCE_CLOSED;
    in->index->file_count = in->file + 1;
    in->source = &file->source;
    int rc = stk_source_open(&file->source, file->path, in->error);
    if (rc == STOKER_OK)
        rc = stk_tar_walk_create(&walk, &file->source, in->error);
    if (rc == STOKER_OK)
        rc = walk_archive(in, walk);
    stk_tar_walk_destroy(walk);
    return rc;
}

static int index_files(struct indexing *in, const struct stk_tar_pattern *pattern)
{
    const struct stk_place place = STK_NOWHERE;
    in->index->files = stk_calloc(pattern->name_count, sizeof(in->index->files[0]));
    if (in->index->files == NULL)
        return stk_error_set(in->error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place,
                             "tar: the list of archives");
    for (in->file = 0; in->file < pattern->name_count; in->file++) {
        char name[PATH_MAX];
        const size_t bytes = stk_tar_pattern_name(pattern, in->file, name, sizeof(name));
        if (bytes == 0)
            return stk_error_set(in->error, STOKER_ELIMIT, STOKER_STAGE_OPEN, &place,
                                 "tar: the name of an archive is too long, or empty");
        int rc = index_file(in, name, bytes);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

static int check_count(struct indexing *in)
{
    const struct stk_tar_counts *counts = &in->index->counts;
    if (in->index->count > 0)
        return STOKER_OK;
    return FAIL(in, STOKER_EEMPTY, STOKER_NO_OFFSET,
                "tar: no KEY.png, KEY.jpg or KEY.jpeg among %llu members; stepped over: %llu "
                "links, %llu devices, %llu stray names, %llu others",
                (unsigned long long)counts->members, (unsigned long long)counts->links,
                (unsigned long long)counts->devices, (unsigned long long)counts->strays,
                (unsigned long long)(counts->unknown + counts->keyless + counts->other_files));
}

int stk_tar_index_build(struct stk_tar_index *out, const struct stk_tar_pattern *pattern,
                        const struct stk_tar_wish *wish, stoker_error *error)
{
    struct indexing in = { .index = out, .wish = wish, .error = error };
    *out = (struct stk_tar_index){ 0 };
    stk_tar_groups_init(&in.groups, wish->bytes_max);
    int rc = index_files(&in, pattern);
    if (rc == STOKER_OK)
        rc = check_count(&in);
    out->has_labels = in.labelled > 0;
    stk_tar_groups_free(&in.groups);
    if (rc != STOKER_OK)
        stk_tar_index_free(out);
    return rc;
}

void stk_tar_index_free(struct stk_tar_index *index)
{
    for (uint32_t i = 0; i < index->file_count; i++) {
        stk_source_close(&index->files[i].source);
        stk_free(index->files[i].path);
    }
    stk_free(index->files);
    stk_free(index->samples);
    *index = (struct stk_tar_index){ 0 };
}
