/* member_fields.c - see member_fields.h. */
#include "datasets/member_fields.h"
#include "datasets/parameters.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "loader/codec/kinds.h"

/* The text after the last dot, or all of it. */
static const char *type_of(const char *extension)
{
    const char *dot = strrchr(extension, '.');
    return dot == NULL ? extension : dot + 1;
}

/* What is before the type is a word for masks: "seg", "x.mask". */
static bool is_mask_stem(const char *extension, const char *type)
{
    const size_t bytes = type == extension ? 0 : (size_t)(type - extension - 1);
    return (bytes >= 3 && strncasecmp(extension + bytes - 3, "seg", 3) == 0) ||
           (bytes >= 4 && strncasecmp(extension + bytes - 4, "mask", 4) == 0);
}

static enum stk_member_use use_of(const char *extension)
{
    char first[STK_EXTENSIONS_BYTES];
    (void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(extension, ";"), extension);
    const char *type = type_of(first);
    if (strcasecmp(first, "cls") == 0)
        return STK_MEMBER_LABEL;
    if (strcmp(first, "__key__") == 0)
        return STK_MEMBER_KEY;
    if (strcasecmp(type, "npy") == 0)
        return STK_MEMBER_ARRAY;
    if (stk_kind_of_extension(type) == STK_SHARD_RAW)
        return STK_MEMBER_BYTES;
    return is_mask_stem(first, type) ? STK_MEMBER_MASK : STK_MEMBER_IMAGE;
}

static bool has_image(const struct stk_member_fields *fields)
{
    for (uint32_t i = 0; i < fields->count; i++)
        if (fields->at[i].use == STK_MEMBER_IMAGE)
            return true;
    return false;
}

/* "boxes.npy" is "boxes", "npy" is "npy"; of several extensions the first one counts. */
static void choose_name(const struct stk_member_fields *fields, struct stk_member_field *field)
{
    const size_t all = strcspn(field->extensions, ";");
    char first[STK_EXTENSIONS_BYTES];
    (void)snprintf(first, sizeof(first), "%.*s", (int)all, field->extensions);
    const char *type = type_of(first);
    const bool bare = type == first;
    if (field->use == STK_MEMBER_LABEL)
        (void)strcpy(field->name, "label");
    else if (field->use == STK_MEMBER_KEY)
        (void)strcpy(field->name, "key");
    else if (field->use == STK_MEMBER_IMAGE && bare && !has_image(fields))
        (void)strcpy(field->name, "image");
    else
        (void)snprintf(field->name, sizeof(field->name), "%.*s",
                       (int)(bare ? strlen(first) : (size_t)(type - first - 1)), first);
}

/* STOKER_OK and NULL: the item is a field. */
static const char *take_item(struct stk_member_fields *out, const struct stk_named *item)
{
    struct stk_member_field *field = &out->at[out->count];
    *field = (struct stk_member_field){ .name = "" };
    if (item->text_bytes == 0 || item->text_bytes >= sizeof(field->extensions))
        return "an extension has 1 to 127 bytes";
    memcpy(field->extensions, item->text, item->text_bytes);
    if (strcmp(field->extensions, "image") == 0)
        stk_kind_list_extensions(';', field->extensions, sizeof(field->extensions));
    field->use = use_of(field->extensions);
    if (item->name[0] != '\0')
        memcpy(field->name, item->name, sizeof(field->name));
    else
        choose_name(out, field);
    for (uint32_t i = 0; i < out->count; i++) {
        const bool once = field->use == STK_MEMBER_LABEL || field->use == STK_MEMBER_KEY;
        if (strcmp(out->at[i].name, field->name) == 0 || (once && out->at[i].use == field->use))
            return "two fields have the same name; NAME=EXTENSION renames one";
        if (strcasecmp(out->at[i].extensions, field->extensions) == 0)
            return "the extension is there twice";
    }
    out->count++;
    return NULL;
}

int stk_member_fields_parse(struct stk_member_fields *out, const char *text, const char **what,
                            const char **item_text, int *item_bytes)
{
    const char *at = text;
    struct stk_named item;
    *out = (struct stk_member_fields){ .count = 0 };
    while (stk_named_next(&at, false, &item)) {
        *item_text = item.text;
        *item_bytes = (int)item.text_bytes;
        *what = out->count == STK_MEMBER_FIELDS_MAX ? "more than 64 fields" : take_item(out, &item);
        if (*what != NULL)
            return out->count == STK_MEMBER_FIELDS_MAX ? STOKER_ELIMIT : STOKER_ESPEC;
    }
    return STOKER_OK;
}

void stk_member_fields_default(struct stk_member_fields *out)
{
    *out = (struct stk_member_fields){
        .at = { { .name = "image", .use = STK_MEMBER_IMAGE },
                { .name = "label", .extensions = "cls", .use = STK_MEMBER_LABEL } },
        .count = 2
    };
    stk_kind_list_extensions(';', out->at[0].extensions, sizeof(out->at[0].extensions));
}
