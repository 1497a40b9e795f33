/* fields.c - the fields of several data sets as those of one: see view.h. */
#include "datasets/views/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/memory/memory.h"

enum { FORM_BYTES = 112 };

/* "28x28x1 uint8 image", "0..100x4 float32" */
static const char *form_of(char text[FORM_BYTES], const stoker_field_info *field)
{
    static const char *const kinds[] = { "", " image", " mask", " bytes" };
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t axis = 0; axis < field->rank && used < FORM_BYTES; axis++)
        used +=
            (size_t)snprintf(text + used, FORM_BYTES - used, "%s%s%" PRIu64, axis == 0 ? "" : "x",
                             axis == 0 && field->varies ? "0.." : "", field->shape[axis]);
    if (used < FORM_BYTES)
        (void)snprintf(text + used, FORM_BYTES - used, "%s%s%s", field->rank == 0 ? "" : " ",
                       stoker_dtype_name(field->dtype), kinds[field->kind]);
    return text;
}

/* The first axis whose lengths must agree: not that of a varying length, and not height and width
 * of images of any size. */
static uint32_t first_axis(const stoker_field_info *a, const stoker_field_info *b)
{
    return a->varies ? 1 : a->pixels_max > 0 && b->pixels_max > 0 ? 2 : 0;
}

static bool forms_agree(const stoker_field_info *a, const stoker_field_info *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank || a->varies != b->varies)
        return false;
    for (uint32_t axis = first_axis(a, b); axis < a->rank; axis++)
        if (a->shape[axis] != b->shape[axis])
            return false;
    return true;
}

static const char *name_of_set(const struct stk_view *view, uint32_t source)
{
    return stoker_dataset_name(view->sources[source].dataset);
}

static int check_field(const struct stk_view *view, const struct stk_view_making *making,
                       uint32_t source, uint32_t index)
{
    char first[FORM_BYTES];
    char other[FORM_BYTES];
    const stoker_field_info *a = &view->fields[index];
    const stoker_field_info *b = stoker_dataset_field(view->sources[source].dataset, index);
    if (strcmp(a->name, b->name) != 0)
        return stk_view_refuse(making, STOKER_EMISMATCH,
                               "field %" PRIu32
                               " is \"%s\" (%s) in data set 1 (%s), but \"%s\" (%s) "
                               "in data set %" PRIu32 " (%s)",
                               index, a->name, form_of(first, a), name_of_set(view, 0), b->name,
                               form_of(other, b), source + 1, name_of_set(view, source));
    if (!forms_agree(a, b))
        return stk_view_refuse(making, STOKER_EMISMATCH,
                               "field \"%s\": data set 1 (%s) has %s, data set %" PRIu32
                               " (%s) has %s",
                               a->name, name_of_set(view, 0), form_of(first, a), source + 1,
                               name_of_set(view, source), form_of(other, b));
    if (!view->makes && a->part != b->part)
        return stk_view_refuse(
            making, STOKER_EMISMATCH,
            "field \"%s\": data set 1 (%s) and data set %" PRIu32 " (%s) store it in another part",
            a->name, name_of_set(view, 0), source + 1, name_of_set(view, source));
    return STOKER_OK;
}

static int check_counts(const struct stk_view *view, const struct stk_view_making *making,
                        uint32_t source)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(view->sources[source].dataset);
    const stoker_dataset *more =
        view->sources[info->field_count > view->info.field_count ? source : 0].dataset;
    const uint32_t fewer =
        info->field_count > view->info.field_count ? view->info.field_count : info->field_count;
    if (info->field_count != view->info.field_count)
        return stk_view_refuse(making, STOKER_EMISMATCH,
                               "data set 1 (%s) has %" PRIu32 " fields, data set %" PRIu32
                               " (%s) has %" PRIu32 ": only one has \"%s\"",
                               name_of_set(view, 0), view->info.field_count, source + 1,
                               name_of_set(view, source), info->field_count,
                               stoker_dataset_field(more, fewer)->name);
    if (!view->makes && info->part_count != view->info.part_count)
        return stk_view_refuse(making, STOKER_EMISMATCH,
                               "data set 1 (%s) stores a sample in %" PRIu32
                               " parts, data set %" PRIu32 " (%s) in %" PRIu32,
                               name_of_set(view, 0), view->info.part_count, source + 1,
                               name_of_set(view, source), info->part_count);
    return STOKER_OK;
}

static void widen(stoker_field_info *all, const stoker_field_info *field)
{
    const bool sizes = first_axis(all, field) == 2;
    for (uint32_t axis = 0; axis < 2 && sizes; axis++)
        all->sizes_differ = all->sizes_differ || all->shape[axis] != field->shape[axis];
    all->sizes_differ = all->sizes_differ || field->sizes_differ;
    if (all->varies && all->shape[0] < field->shape[0])
        all->shape[0] = field->shape[0];
    if (all->pixels_max < field->pixels_max)
        all->pixels_max = field->pixels_max;
    if (all->class_count == 0 || field->class_count == 0)
        all->class_count = 0; /* unknown in one: unknown */
    else if (all->class_count < field->class_count)
        all->class_count = field->class_count;
}

/* A view that makes its samples has no parts, and rows of one size. */
static int make_fields(struct stk_view *view, const struct stk_view_making *making)
{
    for (uint32_t i = 0; i < view->info.field_count; i++) {
        if (view->reads && view->fields[i].pixels_max > 0)
            return stk_view_refuse(making, STOKER_ENOTSUP,
                                   "field \"%s\": images that differ in size beside data sets that "
                                   "make their samples",
                                   view->fields[i].name);
        view->fields[i].part = STOKER_NO_PART;
    }
    return STOKER_OK;
}

int stk_view_join_fields(struct stk_view *view, const struct stk_view_making *making)
{
    const uint32_t count = view->info.field_count;
    int rc = STOKER_OK;
    view->fields = stk_calloc(count, sizeof(view->fields[0]));
    if (view->fields == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "%" PRIu32 " fields", count);
    for (uint32_t i = 0; i < count; i++)
        view->fields[i] = *stoker_dataset_field(view->sources[0].dataset, i);
    for (uint32_t source = 1; rc == STOKER_OK && source < view->source_count; source++) {
        rc = check_counts(view, making, source);
        for (uint32_t i = 0; rc == STOKER_OK && i < count; i++) {
            rc = check_field(view, making, source, i);
            if (rc == STOKER_OK)
                widen(&view->fields[i], stoker_dataset_field(view->sources[source].dataset, i));
        }
    }
    return rc == STOKER_OK && view->makes ? make_fields(view, making) : rc;
}
