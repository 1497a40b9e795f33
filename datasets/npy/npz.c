/* npz.c - "npz:FILE[?fields=x,y]": the arrays of a NumPy archive, a zip file of NPY files.
 *
 *   zip directory ──▶ members chosen ──▶ stored:   read in place, at an offset of the archive
 *                                        deflated: unpacked into memory, once, at open
 */
#include <stdio.h>
#include <string.h>

#include "datasets/arrays/set.h"
#include "datasets/formats.h"
#include "datasets/npy/array.h"
#include "datasets/parameters.h"
#include "datasets/zip/zip.h"

enum { INPUT_NAME_BYTES = 512 };

/* A member that becomes a field. */
struct choice {
    char name[STOKER_FIELD_NAME_BYTES];
    const struct stk_zip_member *member;
    char input_name[INPUT_NAME_BYTES]; /* ARCHIVE:MEMBER */
    struct stk_npy_input input;
    struct stk_region unpacked;
};

/* What is needed while opening only. */
struct opening {
    const stoker_dataset_options *options;
    stoker_error *error;
    char fields[STK_PARAMETER_BYTES_MAX];
    struct stk_zip zip;
    struct stk_source *source;
    struct choice *choices; /* [count] */
    uint32_t count;
    bool source_kept;    /* the data set owns it, and its path */
    uint64_t bytes_left; /* what is left of max_bytes */
};

/* Set the error "PATH: npz: WHAT" and return code. */
#define REFUSE_NPZ(opening, code, ...)                                                             \
    stk_refuse_file((opening)->error, code,                                                        \
                    (opening)->source == NULL ? NULL : (opening)->source->path, STOKER_NO_OFFSET,  \
                    "npz: " __VA_ARGS__)

/* ---- members -------------------------------------------------------------------- */

/* Bytes of the array's name: the member's without ".npy"; 0 = not an array. */
static size_t array_name_bytes(const struct stk_zip_member *member)
{
    const size_t bytes = strlen(member->name);
    return bytes > 4 && strcmp(member->name + bytes - 4, ".npy") == 0 ? bytes - 4 : 0;
}

static const struct stk_zip_member *find_member(const struct opening *opening, const char *name,
                                                size_t bytes)
{
    for (uint32_t i = 0; i < opening->zip.count; i++) {
        const struct stk_zip_member *member = &opening->zip.members[i];
        if (array_name_bytes(member) == bytes && memcmp(member->name, name, bytes) == 0)
            return member;
    }
    return NULL;
}

/* The first names of arrays, for messages. */
static const char *list_arrays(const struct opening *opening, char *line, size_t line_bytes)
{
    size_t used = 0;
    line[0] = '\0';
    for (uint32_t i = 0; i < opening->zip.count && used < line_bytes - 1; i++) {
        const struct stk_zip_member *member = &opening->zip.members[i];
        const int bytes = snprintf(line + used, line_bytes - used, "%s%.*s", used == 0 ? "" : ", ",
                                   (int)array_name_bytes(member), member->name);
        used += bytes > 0 ? (size_t)bytes : 0;
    }
    return line;
}

/* Take a member as the next field. */
static int choose_member(struct opening *opening, const char *name, size_t name_bytes,
                         const struct stk_zip_member *member)
{
    struct choice *choice = &opening->choices[opening->count];
    if (name_bytes >= sizeof(choice->name))
        return REFUSE_NPZ(
            opening, STOKER_ELIMIT,
            "\"%s\": a field's name has up to %d bytes; fields=NAME=MEMBER renames it",
            member->name, STOKER_FIELD_NAME_BYTES - 1);
    memcpy(choice->name, name, name_bytes);
    choice->member = member;
    (void)snprintf(choice->input_name, sizeof(choice->input_name), "%.400s:%.100s",
                   opening->source->path, member->name);
    opening->count++;
    return STOKER_OK;
}

static int choose_listed(struct opening *opening)
{
    const char *at = opening->fields;
    struct stk_named item;
    int rc = STOKER_OK;
    while (rc == STOKER_OK && stk_named_next(&at, false, &item)) {
        char known[128];
        const struct stk_zip_member *member = find_member(opening, item.text, item.text_bytes);
        if (opening->count == STOKER_FIELDS_MAX)
            return REFUSE_NPZ(opening, STOKER_ELIMIT, "more than %d fields", STOKER_FIELDS_MAX);
        if (member == NULL)
            return REFUSE_NPZ(opening, STOKER_ESPEC, "fields: no array \"%.*s\"; there are %s",
                              (int)item.text_bytes, item.text,
                              list_arrays(opening, known, sizeof(known)));
        const bool named = item.name[0] != '\0';
        rc = choose_member(opening, named ? item.name : item.text,
                           named ? strlen(item.name) : item.text_bytes, member);
    }
    return rc;
}

static int choose_all(struct opening *opening)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < opening->zip.count; i++) {
        const struct stk_zip_member *member = &opening->zip.members[i];
        const size_t bytes = array_name_bytes(member);
        if (bytes == 0)
            continue;
        if (opening->count == STOKER_FIELDS_MAX)
            return REFUSE_NPZ(opening, STOKER_ELIMIT, "more than %d arrays; fields= chooses",
                              STOKER_FIELDS_MAX);
        rc = choose_member(opening, member->name, bytes, member);
    }
    if (rc == STOKER_OK && opening->count == 0)
        rc = REFUSE_NPZ(opening, STOKER_EEMPTY, "no member is an array: none ends in .npy");
    return rc;
}

/* ---- arrays --------------------------------------------------------------------- */

/* Deflated members take memory, of which there is max_bytes for all. */
static int make_input(struct opening *opening, struct choice *choice)
{
    const struct stk_zip_member *member = choice->member;
    choice->input = (struct stk_npy_input){ .name = choice->input_name,
                                            .source = opening->source,
                                            .offset = member->offset,
                                            .bytes = member->bytes };
    if (!member->deflated)
        return STOKER_OK;
    const int rc = stk_zip_unpack(member, opening->source, opening->bytes_left, &choice->unpacked,
                                  opening->error);
    choice->input.memory = choice->unpacked.base;
    opening->bytes_left -= rc == STOKER_OK ? member->bytes : 0;
    return rc;
}

static int open_array(struct stk_array_set *set, struct opening *opening, uint32_t index)
{
    struct choice *choice = &opening->choices[index];
    struct stk_npy_header header;
    struct stk_npy_wish wish = { .first = index == 0,
                                 .labels = index > 0 && strcmp(choice->name, "label") == 0,
                                 .max_bytes = opening->bytes_left };
    memcpy(wish.name, choice->name, sizeof(wish.name));
    int rc = make_input(opening, choice);
    if (rc == STOKER_OK)
        rc = stk_npy_read_header(&header, &choice->input, opening->error);
    if (rc != STOKER_OK)
        return rc;
    if (index == 0)
        set->count = header.lengths[0];
    rc = stk_npy_check_count(&choice->input, &header, &opening->choices[0].input, set->count,
                             opening->error);
    if (rc == STOKER_OK)
        rc = stk_npy_take(&set->arrays[index], &set->regions[index], &wish, &choice->input, &header,
                          opening->error);
    if (rc != STOKER_OK || choice->unpacked.base == NULL || wish.labels)
        return rc;
    set->regions[index] = choice->unpacked; /* the set's from now on */
    choice->unpacked = (struct stk_region){ 0 };
    return STOKER_OK;
}

/* Returns true if some array is read from the archive, which then stays open. */
static bool reads_file(const struct stk_array_set *set)
{
    for (uint32_t i = 0; i < set->array_count; i++)
        if (set->arrays[i].memory == NULL)
            return true;
    return false;
}

static int open_arrays(stoker_dataset **out, struct opening *opening)
{
    struct stk_array_set *set = stk_array_set_new("npz", opening->count, 1);
    if (set == NULL)
        return REFUSE_NPZ(opening, STOKER_ENOMEM, "opening");
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < opening->count; i++)
        rc = open_array(set, opening, i);
    if (rc == STOKER_OK) {
        const bool in_file = reads_file(set);
        set->source_count = in_file ? 1 : 0;
        set->sources[0] = *opening->source;
        rc = stk_array_set_make(out, set, &stk_array_ops_npz, opening->error);
        opening->source_kept = rc == STOKER_OK && in_file;
        set->source_count = rc == STOKER_OK ? set->source_count : 0; /* still the opening's */
    }
    if (rc != STOKER_OK)
        stk_array_set_free(set);
    return rc;
}

static int open_archive(stoker_dataset **out, struct opening *opening)
{
    int rc = stk_zip_open(&opening->zip, opening->source, opening->error);
    if (rc != STOKER_OK)
        return rc;
    opening->choices = stk_calloc(STOKER_FIELDS_MAX, sizeof(*opening->choices));
    if (opening->choices == NULL) {
        stk_zip_close(&opening->zip);
        return REFUSE_NPZ(opening, STOKER_ENOMEM, "opening");
    }
    rc = opening->fields[0] == '\0' ? choose_all(opening) : choose_listed(opening);
    if (rc == STOKER_OK)
        rc = open_arrays(out, opening);
    for (uint32_t i = 0; i < opening->count; i++)
        stk_region_unmap(&opening->choices[i].unpacked);
    stk_free(opening->choices);
    stk_zip_close(&opening->zip);
    return rc;
}

static int open_npz(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    struct stk_source source = STK_SOURCE_CLOSED;
    struct opening opening = { .options = options,
                               .error = error,
                               .bytes_left = options->max_bytes };
    const struct stk_spec spec = stk_spec_split(options->storage, rest, '?');
    const struct stk_parameter table[] = { { .key = "fields", .text = opening.fields } };
    if (options->split != NULL)
        return REFUSE_NPZ(&opening, STOKER_EINVAL,
                          "an archive has no splits; fields= chooses arrays");
    if (spec.name_bytes == 0)
        return REFUSE_NPZ(&opening, STOKER_ESPEC,
                          "the file name is empty; write npz:FILE?fields=x,y");
    int rc = stk_parameters_read(spec.after == NULL ? "" : spec.after, table, 1, "npz", error);
    if (rc != STOKER_OK)
        return rc;
    char *path = stk_calloc(spec.name_bytes + 1, 1);
    if (path == NULL)
        return REFUSE_NPZ(&opening, STOKER_ENOMEM, "the path");
    memcpy(path, rest, spec.name_bytes);
    rc = stk_source_open(&source, options->storage, path, error);
    opening.source = &source;
    if (rc == STOKER_OK)
        rc = open_archive(out, &opening);
    if (!opening.source_kept) {
        stk_source_close(&source);
        stk_free(path);
    }
    return rc;
}

/* A zip file whose name ends like one. */
static bool recognize_npz(const stoker_storage *storage, const char *path)
{
    uint8_t begin[4] = { 0 };
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".npz") == 0 &&
           stk_source_begins(storage, path, begin, sizeof(begin)) &&
           memcmp(begin, "PK\3\4", 4) == 0;
}

const struct stk_format stk_format_npz = {
    .name = "npz",
    .about = "npz:FILE?fields=x,y\tarrays of a NumPy archive, one per field",
    .open = open_npz,
    .recognize = recognize_npz
};
