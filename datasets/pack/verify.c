/* verify.c - compare a target with its source: see verify.h.
 *
 * Fields are compared decoded; images of several sizes, which have no row, by their stored bytes. A
 * sample of the source that cannot be read was left out.
 */
#include "datasets/pack/verify.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/pack/members.h"
#include "datasets/pack/progress.h"

/* One of the two data sets, and a sample of it. */
struct side {
    const stoker_dataset *dataset;
    stoker_row rows[STOKER_FIELDS_MAX];
    uint8_t *file; /* [file_bytes]: an image file */
    size_t file_bytes;
    stoker_error error;
};

static bool open_side(struct side *side, const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    side->dataset = dataset;
    side->file_bytes = (size_t)info->encoded_bytes_max + 1;
    side->file = malloc(side->file_bytes);
    for (uint32_t f = 0; f < info->field_count; f++) {
        if (stoker_dataset_field(dataset, f)->sizes_differ)
            continue;
        const size_t bytes = stoker_dataset_field_bytes(dataset, f);
        side->rows[f] = (stoker_row){ .data = malloc(bytes), .bytes_max = bytes };
        if (side->rows[f].data == NULL)
            return false;
    }
    return side->file != NULL;
}

static void close_side(struct side *side)
{
    for (uint32_t f = 0; f < STOKER_FIELDS_MAX; f++)
        free(side->rows[f].data);
    free(side->file);
}

static bool read_side(struct side *side, uint64_t id)
{
    return stoker_dataset_read(side->dataset, id, side->rows, &side->error) == STOKER_OK;
}

static bool read_file(struct side *side, uint64_t id, uint32_t field, size_t *size)
{
    return stoker_dataset_read_stored(side->dataset, id,
                                      stoker_dataset_field(side->dataset, field)->part, side->file,
                                      side->file_bytes, size, &side->error) == STOKER_OK;
}

/* In files a field varies only if its arrays differ in length, and is as long as the longest of
 * them. */
static bool same_axes(const stoker_field_info *x, const stoker_field_info *y, bool files)
{
    const uint32_t from = files && x->varies ? 1 : 0;
    return x->rank == y->rank && (from == 1 || x->varies == y->varies) &&
           memcmp(x->shape + from, y->shape + from, (x->rank - from) * sizeof(x->shape[0])) == 0;
}

/* Fields of folders have another order, the label is a field like others, and one folder is a
 * class, too. */
static bool same_fields(const stoker_dataset *a, const stoker_dataset *b, bool files)
{
    const uint32_t count = stoker_dataset_get_info(a)->field_count;
    const uint32_t others = stoker_dataset_get_info(b)->field_count;
    bool same = files ? count <= others : count == others;
    for (uint32_t f = 0; same && f < count; f++) {
        const stoker_field_info *x = stoker_dataset_field(a, f);
        const int32_t found = stoker_dataset_find_field(b, x->name);
        const stoker_field_info *y = found < 0 ? NULL : stoker_dataset_field(b, (uint32_t)found);
        same = y != NULL && x->kind == y->kind && x->dtype == y->dtype && same_axes(x, y, files) &&
               x->sizes_differ == y->sizes_differ;
    }
    return same;
}

/* Bytes of field `number` in a side's row; of one that varies, those of this sample. */
static size_t row_bytes(const struct side *side, uint32_t number)
{
    const stoker_field_info *field = stoker_dataset_field(side->dataset, number);
    const size_t bytes = stoker_dataset_field_bytes(side->dataset, number);
    return field->varies ? (size_t)(bytes / field->shape[0] * side->rows[number].length) : bytes;
}

static bool same_field(struct side *source, uint64_t id, struct side *target, uint64_t there,
                       uint32_t number)
{
    const stoker_field_info *field = stoker_dataset_field(source->dataset, number);
    const int32_t found = stoker_dataset_find_field(target->dataset, field->name);
    const uint32_t other = (uint32_t)found; /* there: see same_fields */
    size_t a = 0;
    size_t b = 0;
    if (field->sizes_differ)
        return read_file(source, id, number, &a) && read_file(target, there, other, &b) && a == b &&
               memcmp(source->file, target->file, a) == 0;
    assert(target->rows[other].data != NULL);
    return row_bytes(source, number) == row_bytes(target, other) &&
           memcmp(source->rows[number].data, target->rows[other].data, row_bytes(source, number)) ==
               0;
}

/* Returns the name of a field that differs; NULL = none. JPEG files of images differ by design. */
static const char *difference(struct side *source, uint64_t id, struct side *target, uint64_t there,
                              bool lossy)
{
    const uint32_t count = stoker_dataset_get_info(source->dataset)->field_count;
    for (uint32_t f = 0; f < count; f++) {
        const stoker_field_info *field = stoker_dataset_field(source->dataset, f);
        if (lossy && field->kind == STOKER_FIELD_KIND_IMAGE)
            continue;
        if (!same_field(source, id, target, there, f))
            return field->name;
    }
    return NULL;
}

/* Folders of classes have the samples in another order: the files' names are the numbers of the
 * source. */
static bool find_places(const struct pack_plan *plan, const stoker_dataset *packed, uint64_t **out,
                        struct pack_failure *failure)
{
    const uint64_t count = plan->info->count;
    const uint64_t found = stoker_dataset_get_info(packed)->count;
    uint64_t *places = *out = malloc((size_t)count * sizeof(*places));
    if (places == NULL)
        return pack_fail(failure, "verifying", ENOMEM, "the order");
    memset(places, 0xFF, (size_t)count * sizeof(*places));
    for (uint64_t i = 0; i < found; i++) {
        stoker_part part = { 0 };
        uint64_t id = count;
        const bool located = stoker_dataset_locate(packed, i, &part, NULL) == STOKER_OK;
        const char *name =
            located && part.extent.path != NULL ? strrchr(part.extent.path, '/') : NULL;
        if (name == NULL || sscanf(name, "/%" SCNu64 ".", &id) != 1 || id >= count)
            return pack_fail(failure, "verifying", 0, "a file that was not packed");
        places[id] = i;
    }
    return true;
}

/* places: where each sample of the source is in the target; NULL: in order. */
static bool compare(struct side *source, struct side *target, const uint64_t *places,
                    uint64_t samples, const struct pack_plan *plan, struct pack_failure *failure)
{
    struct pack_progress progress =
        pack_progress_begin("verified", 0, plan->info->count, plan->arguments->quiet);
    uint64_t there = 0;
    bool same = true;
    for (uint64_t id = 0; same && id < plan->info->count; id++) {
        if (!read_side(source, id))
            continue;
        const uint64_t place = places == NULL ? there : places[id];
        there++;
        if (place >= samples)
            same = pack_fail(failure, "verifying", 0, "sample %" PRIu64 " is missing", id);
        else if (!read_side(target, place))
            same = pack_fail(failure, "verifying", 0, "%s", target->error.message);
        if (!same)
            break;
        const char *field =
            difference(source, id, target, place, plan->arguments->codec == PACK_JPEG);
        if (field != NULL)
            same = pack_fail(failure, "verifying", 0, "sample %" PRIu64 ": field \"%s\" differs",
                             id, field);
        pack_progress_show(&progress, id + 1);
    }
    cli_progress_line_wipe(&progress.line);
    if (same && there != samples)
        same =
            pack_fail(failure, "verifying", 0, "%" PRIu64 " samples, not %" PRIu64, samples, there);
    return same;
}

bool pack_spec(const struct pack_plan *plan, char spec[PACK_SPEC_BYTES])
{
    const struct pack_arguments *arguments = plan->arguments;
    if (arguments->form != PACK_SHARDS)
        return pack_members_spec(plan, spec);
    return snprintf(spec, PACK_SPEC_BYTES, "shards:%s", arguments->target) < PACK_SPEC_BYTES;
}

bool pack_verify(const struct pack_plan *plan, uint64_t samples, struct pack_failure *failure)
{
    char spec[PACK_SPEC_BYTES];
    stoker_dataset *packed = NULL;
    stoker_error error = { .message = "" };
    struct side source = { .dataset = NULL };
    struct side target = { .dataset = NULL };
    uint64_t *places = NULL;
    bool same = false;
    if (!pack_spec(plan, spec))
        return pack_fail(failure, "verifying", 0, "the names are too long");
    if (stoker_dataset_open(&packed, spec, NULL, &error) != STOKER_OK)
        return pack_fail(failure, "verifying", 0, "%s", error.message);
    if (!same_fields(plan->source, packed, plan->arguments->form != PACK_SHARDS))
        (void)pack_fail(failure, "verifying", 0, "the fields differ");
    else if (!open_side(&source, plan->source) || !open_side(&target, packed))
        (void)pack_fail(failure, "verifying", ENOMEM, "a sample");
    else if (!pack_members_by_class(plan) || find_places(plan, packed, &places, failure))
        same = compare(&source, &target, places, samples, plan, failure);
    free(places);
    close_side(&source);
    close_side(&target);
    stoker_dataset_close(&packed);
    return same;
}
