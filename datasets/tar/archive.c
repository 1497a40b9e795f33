/* archive.c - see archive.h.
 *
 *   archive ──walk──▶ members ──by key──▶ groups ──all members seen──▶ samples
 *
 * Nothing is extracted: labels are read, of all else only the offset is kept. Links, devices and
 * names that lead out of the folder are counted and skipped.
 */
#include "datasets/tar/archive.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "datasets/tar/walk.h"
#include "loader/base/memory.h"

enum { LABEL_BYTES_MAX = 32, SHOWN_BYTES = STK_TAR_SHOWN_BYTES };

#define FAIL(part, code, offset, ...)                                                              \
    stk_error_set((part)->error, code, STOKER_STAGE_OPEN,                                          \
                  &(struct stk_place){ (part)->source->path, offset, STOKER_NO_SAMPLE, 0 },        \
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

/* The text after the first dot of the last component; NULL if there is no key before it. */
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
    static const char *const fields[] = { "png", "jpg", "jpeg", "webp" };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcasecmp(field, fields[i]) == 0)
            return fields[i];
    return NULL;
}

/* ---- fields --------------------------------------------------------------------- */

static int take_image(struct stk_tar_part *part, const struct stk_tar_member *member,
                      struct stk_tar_group *group, const char *field)
{
    if (group->image_at != STK_TAR_NONE)
        return FAIL(part, STOKER_EFORMAT, member->offset,
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

static int take_label(struct stk_tar_part *part, struct stk_tar_walk *walk,
                      const struct stk_tar_member *member, struct stk_tar_group *group)
{
    const uint64_t classes = part->wish->class_count;
    const uint8_t *text = NULL;
    if (group->label_at != STK_TAR_NONE)
        return FAIL(part, STOKER_EFORMAT, member->offset,
                    "tar: %s is a second label of its key: another .cls is at byte %llu",
                    shown(member->name), (unsigned long long)group->label_at);
    if (member->bytes > LABEL_BYTES_MAX)
        return FAIL(part, STOKER_EFORMAT, member->offset, "tar: %s: a label of %llu bytes",
                    shown(member->name), (unsigned long long)member->bytes);
    int rc = stk_tar_walk_read(walk, member->offset, (size_t)member->bytes, &text, part->error);
    if (rc != STOKER_OK)
        return rc;
    if (!read_label(text, (size_t)member->bytes, &group->label))
        return FAIL(part, STOKER_EFORMAT, member->offset,
                    "tar: %s: the label is not a decimal number of 64 bits", shown(member->name));
    if (classes != 0 && (group->label < 0 || (uint64_t)group->label >= classes))
        return FAIL(part, STOKER_EFORMAT, member->offset,
                    "tar: %s: label %lld out of range (%llu classes)", shown(member->name),
                    (long long)group->label, (unsigned long long)classes);
    group->label_at = member->offset;
    return STOKER_OK;
}

static int take_file(struct stk_tar_part *part, struct stk_tar_walk *walk,
                     struct stk_tar_member *member)
{
    struct stk_tar_counts *counts = &part->counts;
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
    int rc = stk_tar_groups_find(&part->groups, member->name, key_bytes, &group);
    if (rc != STOKER_OK)
        return FAIL(part, rc, member->header_at, "tar: the index, of at most %llu bytes",
                    (unsigned long long)part->wish->bytes_max);
    part->last_group = (size_t)(group - part->groups.at);
    return image != NULL ? take_image(part, member, group, image)
                         : take_label(part, walk, member, group);
}

static int take_member(struct stk_tar_part *part, struct stk_tar_walk *walk,
                       struct stk_tar_member *member)
{
    struct stk_tar_counts *counts = &part->counts;
    if (counts->members++ == part->wish->entries_max)
        return FAIL(part, STOKER_ELIMIT, member->header_at, "tar: more than %llu members",
                    (unsigned long long)part->wish->entries_max);
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
    return take_file(part, walk, member);
}

/* ---- from groups to samples ----------------------------------------------------- */

static int append(struct stk_tar_part *part, const struct stk_tar_group *group)
{
    if (part->count == part->capacity) {
        void *array = part->samples;
        int rc = stk_tar_grow(&array, sizeof(part->samples[0]), part->count, &part->capacity,
                              &part->bytes, part->wish->bytes_max);
        part->samples = array;
        if (rc != STOKER_OK)
            return FAIL(part, rc, STOKER_NO_OFFSET, "tar: the index, of at most %llu bytes",
                        (unsigned long long)part->wish->bytes_max);
    }
    part->samples[part->count++] = (struct stk_tar_sample){
        .offset = group->image_at,
        .bytes = group->image_bytes,
        .file = part->number,
        .label = group->label_at != STK_TAR_NONE ? group->label : 0,
    };
    return STOKER_OK;
}

static int take_groups(struct stk_tar_part *part, bool cut)
{
    struct stk_tar_counts *counts = &part->counts;
    for (size_t i = 0; i < part->groups.count; i++) {
        const struct stk_tar_group *group = &part->groups.at[i];
        const bool labelled = group->label_at != STK_TAR_NONE;
        const bool has_image = group->image_at != STK_TAR_NONE;
        if (cut && i == part->last_group && !(labelled && has_image)) {
            counts->cut_samples++; /* what else it had may be what is missing */
            continue;
        }
        counts->imageless += has_image ? 0 : 1;
        if (!has_image)
            continue;
        if (!labelled && part->unlabelled == 0)
            (void)snprintf(part->first_unlabelled, sizeof(part->first_unlabelled), "%.*s",
                           (int)(group->key_bytes < SHOWN_BYTES ? group->key_bytes : SHOWN_BYTES),
                           part->groups.keys + group->key);
        part->labelled += labelled ? 1 : 0;
        part->unlabelled += labelled ? 0 : 1;
        int rc = append(part, group);
        if (rc != STOKER_OK)
            return rc;
        if (part->labelled > 0 && part->unlabelled > 0)
            return FAIL(part, STOKER_EMISMATCH, STOKER_NO_OFFSET,
                        "tar: some samples have a .cls, but %s has none", part->first_unlabelled);
    }
    return STOKER_OK;
}

/* ---- archives ------------------------------------------------------------------- */

static void begin_archive(struct stk_tar_part *part)
{
    stk_tar_groups_clear(&part->groups);
    part->last_group = SIZE_MAX;
}

/* At the end of an archive: take its samples. *further: another one follows, with keys of its own. */
static int end_archive(struct stk_tar_part *part, struct stk_tar_walk *walk, bool *further)
{
    int rc = take_groups(part, false);
    if (rc == STOKER_OK)
        rc = stk_tar_walk_further(walk, further, part->error);
    begin_archive(part);
    return rc;
}

static int walk_archives(struct stk_tar_part *part, struct stk_tar_walk *walk)
{
    struct stk_tar_member member = { .kind = STK_TAR_FILE };
    stoker_error cut = { .code = 0 };
    bool further = true;
    int rc = STOKER_OK;
    begin_archive(part);
    while (rc == STOKER_OK && further) {
        rc = stk_tar_walk_next(walk, &member, &cut);
        if (rc == STOKER_ETRUNCATED && part->wish->keep_truncated) {
            part->counts.cut++;
            return take_groups(part, true);
        }
        if (rc != STOKER_OK && part->error != NULL)
            *part->error = cut;
        if (rc == STOKER_OK)
            rc = member.kind == STK_TAR_END ? end_archive(part, walk, &further)
                                            : take_member(part, walk, &member);
    }
    return rc;
}

int stk_tar_part_add(struct stk_tar_part *part, const struct stk_source *source, uint32_t number,
                     stoker_error *error)
{
    struct stk_tar_walk *walk = NULL;
    part->source = source;
    part->number = number;
    part->error = error;
    int rc = stk_tar_walk_create(&walk, source, error);
    if (rc == STOKER_OK)
        rc = walk_archives(part, walk);
    stk_tar_walk_destroy(walk);
    return rc;
}

void stk_tar_part_init(struct stk_tar_part *part, const struct stk_tar_wish *wish)
{
    *part = (struct stk_tar_part){ .wish = wish };
    stk_tar_groups_init(&part->groups, wish->bytes_max);
}

void stk_tar_part_free(struct stk_tar_part *part)
{
    stk_tar_groups_free(&part->groups);
    stk_free(part->samples);
    part->samples = NULL;
}
