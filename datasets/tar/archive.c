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
#include "loader/base/memory/memory.h"

enum { LABEL_BYTES_MAX = 32, SHOWN_BYTES = STK_TAR_SHOWN_BYTES, ARRAY_BYTES_MAX = 1 << 30 };

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

/* The number of the extension, of those that a ';' separates, which the text is; UINT32_MAX =
 * none. */
static uint32_t find_spelling(const char *extensions, const char *text)
{
    const size_t bytes = strlen(text);
    const char *at = extensions;
    for (uint32_t number = 0;; number++) {
        const size_t length = strcspn(at, ";");
        if (length == bytes && strncasecmp(at, text, bytes) == 0)
            return number;
        if (at[length] == '\0')
            return UINT32_MAX;
        at += length + 1;
    }
}

/* Extension `number` of those, for a message; returns its bytes. */
static int spelling(const char *extensions, uint32_t number, const char **out)
{
    const char *at = extensions;
    for (; number > 0; number--)
        at += strcspn(at, ";") + 1;
    *out = at;
    return (int)strcspn(at, ";");
}

/* The field that takes members with this extension; field_count = none. */
static uint32_t find_field(const struct stk_tar_wish *wish, const char *extension, uint32_t *number)
{
    uint32_t field = 0;
    while (field < wish->field_count &&
           (*number = find_spelling(wish->fields[field].extensions, extension)) == UINT32_MAX)
        field++;
    return field;
}

/* ---- arrays --------------------------------------------------------------------- */

/* Read the header of an array, and keep where its elements are. */
static int take_array(struct stk_tar_part *part, struct stk_tar_walk *walk,
                      const struct stk_tar_member *member, uint32_t field,
                      struct stk_tar_extent *extent)
{
    struct stk_npy_header header = { 0 };
    const uint8_t *begin = NULL;
    char name[SHOWN_BYTES + 1];
    const size_t most = STK_TAR_BLOCK_BYTES;
    const size_t size = member->bytes < most ? (size_t)member->bytes : most;
    (void)snprintf(name, sizeof(name), "%s", shown(member->name)); /* reading may overwrite it */
    int rc = stk_tar_walk_read(walk, member->offset, size, &begin, part->error);
    if (rc != STOKER_OK)
        return rc;
    stoker_error said = { .message = "" };
    rc = stk_npy_parse_sample(&header, begin, size, member->bytes, NULL, &said);
    if (rc != STOKER_OK)
        return FAIL(part, rc, member->offset, "tar: %s: %s", name, said.message);
    struct stk_npy_shape *shape = &part->shapes[field];
    char *first = part->first_array[field];
    if (!shape->seen)
        memcpy(first, name, sizeof(name));
    if (!stk_npy_shape_add(shape, &header))
        return FAIL(part, STOKER_EMISMATCH, member->offset,
                    "tar: %s and %s differ in type or byte order, or in more than the first axis",
                    first, name);
    extent->offset = member->offset + header.header_bytes;
    extent->bytes = (uint32_t)(member->bytes - header.header_bytes);
    return STOKER_OK;
}

/* ---- fields --------------------------------------------------------------------- */

/* Where a field of the current group is kept. */
static struct stk_tar_extent *extent_of(struct stk_tar_groups *groups, struct stk_tar_group *group,
                                        uint32_t field)
{
    const size_t at = (size_t)(group - groups->at);
    return field == 0 ? &group->first : &groups->more[at * groups->more_count + field - 1];
}

static int take_field(struct stk_tar_part *part, struct stk_tar_walk *walk,
                      const struct stk_tar_member *member, struct stk_tar_group *group,
                      uint32_t field, uint32_t number)
{
    struct stk_tar_extent *extent = extent_of(&part->groups, group, field);
    if (extent->offset != STK_TAR_NONE) {
        const char *text = NULL;
        const int bytes = spelling(part->wish->fields[field].extensions, extent->spelling, &text);
        return FAIL(part, STOKER_EFORMAT, member->offset,
                    "tar: %s is a second member for its field: its .%.*s is at byte %llu",
                    shown(member->name), bytes, text, (unsigned long long)extent->offset);
    }
    extent->spelling = number;
    if (part->wish->fields[field].is_array) {
        if (member->bytes > ARRAY_BYTES_MAX)
            return FAIL(part, STOKER_ELIMIT, member->offset, "tar: %s: an array of over 1 GiB",
                        shown(member->name));
        return take_array(part, walk, member, field, extent);
    }
    extent->offset = member->offset;
    extent->bytes = member->bytes < UINT32_MAX ? (uint32_t)member->bytes : UINT32_MAX;
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
    const struct stk_tar_wish *wish = part->wish;
    struct stk_tar_group *group = NULL;
    const char *extension = field_of(member->name);
    if (extension == NULL) {
        counts->keyless++;
        return STOKER_OK;
    }
    uint32_t number = 0;
    const uint32_t field = find_field(wish, extension, &number);
    const bool label = wish->takes_labels && strcasecmp(extension, "cls") == 0;
    if (field == wish->field_count && !label) {
        counts->other_files++;
        return STOKER_OK;
    }
    const size_t key_bytes = (size_t)(extension - 1 - member->name);
    int rc = stk_tar_groups_find(&part->groups, member->name, key_bytes, &group);
    if (rc != STOKER_OK)
        return FAIL(part, rc, member->header_at, "tar: the index, of at most %llu bytes",
                    (unsigned long long)wish->bytes_max);
    part->last_group = (size_t)(group - part->groups.at);
    return label ? take_label(part, walk, member, group)
                 : take_field(part, walk, member, group, field, number);
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

static int no_room(const struct stk_tar_part *part, int rc)
{
    return FAIL(part, rc, STOKER_NO_OFFSET, "tar: the index, of at most %llu bytes",
                (unsigned long long)part->wish->bytes_max);
}

/* Make room in one of the part's arrays for `count` elements. */
static int make_room(struct stk_tar_part *part, void **array, size_t element_bytes, size_t used,
                     size_t count, size_t *capacity)
{
    int rc = STOKER_OK;
    while (rc == STOKER_OK && *capacity < count)
        rc =
            stk_tar_grow(array, element_bytes, used, capacity, &part->bytes, part->wish->bytes_max);
    return rc;
}

static int append_key(struct stk_tar_part *part, const struct stk_tar_group *group)
{
    void *keys = part->keys;
    void *ends = part->key_ends;
    int rc = make_room(part, &keys, 1, part->keys_bytes, part->keys_bytes + group->key_bytes,
                       &part->keys_capacity);
    part->keys = keys;
    if (rc == STOKER_OK)
        rc = make_room(part, &ends, sizeof(part->key_ends[0]), part->count, part->count + 1,
                       &part->key_ends_capacity);
    part->key_ends = ends;
    if (rc != STOKER_OK)
        return no_room(part, rc);
    memcpy(part->keys + part->keys_bytes, part->groups.keys + group->key, group->key_bytes);
    part->keys_bytes += group->key_bytes;
    part->key_ends[part->count] = part->keys_bytes;
    return STOKER_OK;
}

static int append_sample(struct stk_tar_part *part, const struct stk_tar_group *group)
{
    const size_t more = part->more_count;
    void *samples = part->samples;
    void *extents = part->more;
    int rc = make_room(part, &samples, sizeof(part->samples[0]), part->count, part->count + 1,
                       &part->capacity);
    part->samples = samples;
    if (rc == STOKER_OK)
        rc = make_room(part, &extents, sizeof(part->more[0]), part->count * more,
                       (part->count + 1) * more, &part->more_capacity);
    part->more = extents;
    if (rc != STOKER_OK)
        return no_room(part, rc);
    if (part->wish->takes_keys && (rc = append_key(part, group)) != STOKER_OK)
        return rc;
    if (more > 0)
        memcpy(&part->more[part->count * more],
               &part->groups.more[(size_t)(group - part->groups.at) * more],
               more * sizeof(part->more[0]));
    part->samples[part->count++] = (struct stk_tar_sample){
        .offset = group->first.offset,
        .bytes = group->first.bytes,
        .file = part->number,
        .label = group->label_at != STK_TAR_NONE ? group->label : 0,
    };
    return STOKER_OK;
}

/* The first field of which the group has no member; field_count = it has all. */
static uint32_t missing_field(struct stk_tar_part *part, struct stk_tar_group *group)
{
    uint32_t field = 0;
    while (field < part->wish->field_count &&
           extent_of(&part->groups, group, field)->offset != STK_TAR_NONE)
        field++;
    return field;
}

/* Bytes of a key that are shown. */
static int shown_key(const struct stk_tar_group *group)
{
    return (int)(group->key_bytes < SHOWN_BYTES ? group->key_bytes : SHOWN_BYTES);
}

/* Decide whether a group is a sample. `last`: its archive ends too early, so that members may be
 * missing. */
static int take_group(struct stk_tar_part *part, struct stk_tar_group *group, bool last)
{
    const struct stk_tar_wish *wish = part->wish;
    const bool labeled = group->label_at != STK_TAR_NONE;
    const uint32_t missing = missing_field(part, group);
    const char *key = part->groups.keys + group->key;
    if (last && (missing < wish->field_count || (wish->takes_labels && !labeled))) {
        part->counts.cut_samples++;
        return STOKER_OK;
    }
    if (missing < wish->field_count && wish->complete)
        return FAIL(part, STOKER_EMISMATCH, STOKER_NO_OFFSET, "tar: %.*s has no .%s",
                    shown_key(group), key, wish->fields[missing].extensions);
    if (missing < wish->field_count) {
        part->counts.imageless++;
        return STOKER_OK;
    }
    if (!labeled && wish->needs_labels)
        return FAIL(part, STOKER_EMISMATCH, STOKER_NO_OFFSET, "tar: %.*s has no .cls",
                    shown_key(group), key);
    if (!labeled && part->unlabeled == 0)
        (void)snprintf(part->first_unlabeled, sizeof(part->first_unlabeled), "%.*s",
                       shown_key(group), key);
    part->labeled += labeled ? 1 : 0;
    part->unlabeled += labeled ? 0 : 1;
    const int rc = append_sample(part, group);
    if (rc == STOKER_OK && part->labeled > 0 && part->unlabeled > 0)
        return FAIL(part, STOKER_EMISMATCH, STOKER_NO_OFFSET,
                    "tar: some samples have a .cls, but %s has none", part->first_unlabeled);
    return rc;
}

static int take_groups(struct stk_tar_part *part, bool cut)
{
    int rc = STOKER_OK;
    for (size_t i = 0; rc == STOKER_OK && i < part->groups.count; i++)
        rc = take_group(part, &part->groups.at[i], cut && i == part->last_group);
    return rc;
}

/* ---- archives ------------------------------------------------------------------- */

static void begin_archive(struct stk_tar_part *part)
{
    stk_tar_groups_clear(&part->groups);
    part->last_group = SIZE_MAX;
}

/* At the end of an archive: take its samples. *further: another one follows, with keys of its
 * own. */
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
    *part = (struct stk_tar_part){ .wish = wish, .more_count = wish->field_count - 1 };
    stk_tar_groups_init(&part->groups, part->more_count, wish->bytes_max);
}

void stk_tar_part_free(struct stk_tar_part *part)
{
    stk_tar_groups_free(&part->groups);
    stk_free(part->samples);
    stk_free(part->more);
    stk_free(part->keys);
    stk_free(part->key_ends);
    part->samples = NULL;
    part->more = NULL;
    part->keys = NULL;
    part->key_ends = NULL;
}
