/* fields.c - the fields of a data set: asked for once, checked once, so that no later stage must.
 *
 *   field() per field ─┐
 *                      ├─▶ struct stk_field[] ─▶ fields of each part ─▶ summary in info
 *   or info alone ─────┘
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/dataset/dataset.h"

__attribute__((format(printf, 3, 4))) static int refuse_fields(const stoker_dataset *dataset,
                                                               stoker_error *error,
                                                               const char *format, ...)
{
    char line[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    return stk_refuse_spec(error, STOKER_EINVAL, "%s: %s", dataset->ops->name, line);
}

/* ---- what the callbacks describe ---- */

/* Fields of a data set without field(). */
static void from_info(const stoker_dataset_info *info, uint32_t field, stoker_field_info *out)
{
    if (field == 1) {
        *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                    .name = "label",
                                    .dtype = info->label_dtype,
                                    .part = STOKER_NO_PART,
                                    .class_count = info->class_count };
        return;
    }
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = info->is_image ? "image" : "row",
                                .kind = info->is_image ? STOKER_FIELD_KIND_IMAGE
                                                       : STOKER_FIELD_KIND_ARRAY,
                                .dtype = info->dtype,
                                .rank = info->rank,
                                .pixels_max = info->pixels_max,
                                .sizes_differ = info->sizes_differ };
    memcpy(out->shape, info->shape, sizeof(out->shape));
}

static int ask_for_fields(stoker_dataset *dataset, stoker_error *error)
{
    stoker_dataset_info *info = &dataset->info;
    const bool asks = dataset->ops->field != NULL;
    if (!asks && info->part_count > 1)
        return refuse_fields(dataset, error,
                             "part_count is %" PRIu32
                             ", but without field() a sample has one part: "
                             "leave it 0, or 1",
                             info->part_count);
    if (!asks) {
        info->field_count = info->label_dtype == STOKER_DTYPE_NONE ? 1 : 2;
        info->part_count = 1;
    }
    if (info->field_count == 0 || info->field_count > STOKER_FIELDS_MAX ||
        info->part_count > STOKER_FIELDS_MAX)
        return refuse_fields(
            dataset, error,
            "%" PRIu32 " fields and %" PRIu32 " parts; 1 to %d and 0 to %d are possible",
            info->field_count, info->part_count, STOKER_FIELDS_MAX, STOKER_FIELDS_MAX);
    dataset->fields = stk_calloc(info->field_count, sizeof(dataset->fields[0]));
    dataset->part_fields = stk_calloc(info->part_count + 1, sizeof(dataset->part_fields[0]));
    if (dataset->fields == NULL || dataset->part_fields == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "%s: the fields", dataset->ops->name);
    for (uint32_t i = 0; i < info->field_count; i++) {
        stoker_field_info *field = &dataset->fields[i].info;
        if (!asks) {
            from_info(info, i, field);
            continue;
        }
        union stk_room room;
        stk_room_init(&room, sizeof(*field));
        const int rc = dataset->ops->field(dataset->self, i, (void *)&room);
        stoker_error said;
        if (rc != 0)
            return stk_refuse_spec(error, stk_callback_failed(rc, "field()", &said), "%s: %s",
                                   dataset->ops->name, said.message);
        if (!stk_room_fits(&room, STK_SIZE_UP_TO(stoker_field_info, sizes_differ), sizeof(*field)))
            return stk_refuse_spec(
                error, STOKER_EINVAL,
                "%s: field() changed struct_size, or set members that this version does not know",
                dataset->ops->name);
        stk_struct_read(field, sizeof(*field), &room, room.size);
    }
    return 0;
}

/* ---- one field ---- */

static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    return name != NULL && name[0] != '\0' && strlen(name) < STOKER_FIELD_NAME_BYTES &&
           name[strspn(name, allowed)] == '\0';
}

/* Set bytes and entry_bytes; false if an axis is empty, the type unknown or the product too
 * large. */
static bool measure(struct stk_field *field)
{
    const stoker_field_info *info = &field->info;
    size_t bytes = stoker_dtype_bytes(info->dtype);
    field->entry_bytes = bytes;
    for (uint32_t axis = info->rank; axis-- > 0;) {
        field->entry_bytes = bytes;
        if (info->shape[axis] > SIZE_MAX / 2 ||
            __builtin_mul_overflow(bytes, (size_t)info->shape[axis], &bytes))
            return false;
    }
    field->bytes = bytes;
    return bytes > 0 && bytes <= SIZE_MAX / 2;
}

static int check_kind(const stoker_dataset *dataset, const stoker_field_info *field,
                      stoker_error *error)
{
    const bool pixels =
        field->kind == STOKER_FIELD_KIND_IMAGE || field->kind == STOKER_FIELD_KIND_MASK;
    if (field->kind > STOKER_FIELD_KIND_BYTES)
        return refuse_fields(dataset, error, "field \"%s\": kind %d is unknown", field->name,
                             (int)field->kind);
    if (pixels && (field->rank != 3 || field->varies))
        return refuse_fields(
            dataset, error,
            "field \"%s\": an image or mask has three axes: height, width, channels", field->name);
    if (field->kind == STOKER_FIELD_KIND_BYTES &&
        (field->rank != 1 || !field->varies || field->dtype != STOKER_DTYPE_UINT8))
        return refuse_fields(dataset, error, "field \"%s\": bytes are a varying number of uint8",
                             field->name);
    if (!pixels && (field->pixels_max > 0 || field->sizes_differ))
        return refuse_fields(dataset, error, "field \"%s\": only images and masks differ in size",
                             field->name);
    return 0;
}

static int check_field(stoker_dataset *dataset, uint32_t index, stoker_error *error)
{
    struct stk_field *field = &dataset->fields[index];
    const stoker_field_info *info = &field->info;
    if (!is_name(info->name))
        return refuse_fields(dataset, error,
                             "field %" PRIu32
                             ": a name has 1 to %d bytes of letters, digits and \"_-.\"",
                             index, STOKER_FIELD_NAME_BYTES - 1);
    for (uint32_t other = 0; other < index; other++)
        if (strcmp(dataset->fields[other].info.name, info->name) == 0)
            return refuse_fields(dataset, error, "two fields have the name \"%s\"", info->name);
    if (info->rank >= STOKER_RANK_MAX || (info->varies && info->rank == 0) || !measure(field))
        return refuse_fields(dataset, error,
                             "field \"%s\": its type or shape is impossible, or larger than memory",
                             info->name);
    if (info->part != STOKER_NO_PART && info->part >= dataset->info.part_count)
        return refuse_fields(dataset, error, "field \"%s\": part %" PRIu32 " of %" PRIu32,
                             info->name, info->part, dataset->info.part_count);
    if (info->part == STOKER_NO_PART && info->varies && dataset->ops->make == NULL)
        return refuse_fields(dataset, error, "field \"%s\" varies, which values() cannot fill",
                             info->name);
    return check_kind(dataset, info, error);
}

/* ---- parts ---- */

/* The fields of a part are consecutive, and each part has some. */
static int group_by_part(stoker_dataset *dataset, stoker_error *error)
{
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        const stoker_field_info *field = &dataset->fields[i].info;
        if (field->part == STOKER_NO_PART)
            continue;
        struct stk_part_fields *part = &dataset->part_fields[field->part];
        if (part->count == 0)
            part->first = i;
        if (part->first + part->count != i)
            return refuse_fields(dataset, error,
                                 "field \"%s\": the fields of part %" PRIu32 " are not consecutive",
                                 field->name, field->part);
        part->count++;
    }
    for (uint32_t part = 0; part < dataset->info.part_count; part++)
        if (dataset->part_fields[part].count == 0)
            return refuse_fields(dataset, error, "part %" PRIu32 " fills no field", part);
    return 0;
}

static int check_callbacks(const stoker_dataset *dataset, stoker_error *error)
{
    const stoker_dataset_ops *ops = dataset->ops;
    bool lacks_values = false;
    for (uint32_t i = 0; i < dataset->info.field_count; i++)
        lacks_values = lacks_values || dataset->fields[i].info.part == STOKER_NO_PART;
    if (dataset->info.part_count > 0 && ops->locate == NULL)
        return refuse_fields(dataset, error, "it has parts but no locate()");
    if (dataset->info.part_count > 0 && ops->make != NULL)
        return refuse_fields(dataset, error, "make() is for data sets without parts");
    if (lacks_values && ops->values == NULL && ops->make == NULL)
        return refuse_fields(dataset, error,
                             "a field has no part, and there is neither values() nor make()");
    return 0;
}

/* ---- the summary ---- */

static bool is_label(const stoker_field_info *field)
{
    return strcmp(field->name, "label") == 0 && field->rank == 0 &&
           (field->dtype == STOKER_DTYPE_INT64 || field->dtype == STOKER_DTYPE_FLOAT32);
}

/* Fill in the members of info that are about field 0 and the label. */
static void summarize(stoker_dataset *dataset)
{
    stoker_dataset_info *info = &dataset->info;
    const stoker_field_info *first = &dataset->fields[0].info;
    info->dtype = first->dtype;
    info->rank = first->rank;
    memcpy(info->shape, first->shape, sizeof(info->shape));
    info->is_image = first->kind == STOKER_FIELD_KIND_IMAGE;
    info->pixels_max = first->pixels_max;
    info->sizes_differ = first->sizes_differ;
    info->label_dtype = STOKER_DTYPE_NONE;
    info->class_count = 0;
    dataset->row_bytes = dataset->fields[0].bytes;
    dataset->label = -1;
    for (uint32_t i = 1; i < info->field_count && dataset->label < 0; i++) {
        const stoker_field_info *field = &dataset->fields[i].info;
        if (!is_label(field))
            continue;
        dataset->label = (int32_t)i;
        info->label_dtype = field->dtype;
        info->class_count = field->class_count;
    }
}

int stk_dataset_take_fields(stoker_dataset *dataset, stoker_error *error)
{
    int rc = ask_for_fields(dataset, error);
    for (uint32_t i = 0; rc == 0 && i < dataset->info.field_count; i++)
        rc = check_field(dataset, i, error);
    if (rc == 0)
        rc = group_by_part(dataset, error);
    if (rc == 0)
        rc = check_callbacks(dataset, error);
    if (rc == 0)
        summarize(dataset);
    return rc;
}

void stk_dataset_free_fields(stoker_dataset *dataset)
{
    stk_free(dataset->fields);
    stk_free(dataset->part_fields);
}

/* ---- queries ---- */

const stoker_field_info *stoker_dataset_field(const stoker_dataset *dataset, uint32_t field)
{
    return dataset == NULL || field >= dataset->info.field_count ? NULL
                                                                 : &dataset->fields[field].info;
}

int32_t stoker_dataset_find_field(const stoker_dataset *dataset, const char *name)
{
    for (uint32_t i = 0; dataset != NULL && name != NULL && i < dataset->info.field_count; i++)
        if (strcmp(dataset->fields[i].info.name, name) == 0)
            return (int32_t)i;
    return -1;
}

size_t stoker_dataset_field_bytes(const stoker_dataset *dataset, uint32_t field)
{
    return dataset == NULL || field >= dataset->info.field_count ? 0 : dataset->fields[field].bytes;
}
