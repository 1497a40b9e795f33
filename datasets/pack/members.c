/* members.c - see members.h. */
#include "datasets/pack/members.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "datasets/pack/encode/npy.h"

enum {
    ALTERNATIVES_BYTES = 256,
    EXTENSIONS_MAX = 127, /* bytes of one field's in the spec of an archive */
    FIELDS_MAX = 64,      /* in the spec of an archive */
    FOLDERS_MAX = 32,
    LIST_MAX = 1023, /* bytes of fields= */
    CLASSES_MAX = 65536,
    COMPONENT_MAX = 180 /* bytes of a part of a key: a file's name with its extension fits */
};

static bool in_archive(const struct pack_plan *plan)
{
    return plan->arguments->form == PACK_TAR;
}

bool pack_members_is_class(const struct stk_shard_field *field)
{
    return field->part == STOKER_NO_PART && field->dtype == STOKER_DTYPE_INT64 &&
           strcmp(field->name, "label") == 0;
}

bool pack_members_by_class(const struct pack_plan *plan)
{
    const struct stk_shard_field *field = plan->fields;
    return plan->arguments->form == PACK_FOLDER && field[0].kind == STOKER_FIELD_KIND_IMAGE &&
           strcmp(field[0].name, "image") == 0 &&
           (plan->info->field_count == 1 ||
            (plan->info->field_count == 2 && pack_members_is_class(&field[1]) &&
             field[1].class_count > 0));
}

bool pack_members_is_key(const struct pack_plan *plan, uint32_t number)
{
    const struct stk_shard_field *field = &plan->fields[number];
    return strcmp(field->name, "key") == 0 && field->kind == STOKER_FIELD_KIND_BYTES;
}

/* Returns true if it is the first image, whose members have no name. */
static bool is_first_image(const struct pack_plan *plan, uint32_t number)
{
    for (uint32_t i = 0; i < number; i++)
        if (plan->fields[i].kind == STOKER_FIELD_KIND_IMAGE)
            return false;
    return plan->fields[number].kind == STOKER_FIELD_KIND_IMAGE;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    const size_t bytes = strlen(end);
    return length >= bytes && strcasecmp(name + length - bytes, end) == 0;
}

/* As tar: recognizes masks: by the end of the name. */
static bool sounds_like_mask(const char *name)
{
    return ends_with(name, "seg") || ends_with(name, "mask");
}

/* ---- types ---------------------------------------------------------------------- */

/* Returns the length of the UTF-8 sequence that begins at `at`; 0 = none. */
static size_t utf8_bytes(const uint8_t *at, size_t left)
{
    const size_t bytes = at[0] < 0x80   ? 1
                         : at[0] < 0xC2 ? 0
                         : at[0] < 0xE0 ? 2
                         : at[0] < 0xF0 ? 3
                         : at[0] < 0xF5 ? 4
                                        : 0;
    if (at[0] == 0 || bytes > left)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    return bytes;
}

static bool is_text(const struct pack_piece *piece)
{
    size_t at = 0;
    while (at < piece->size) {
        const size_t step = utf8_bytes(piece->bytes + at, piece->size - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

/* The type of a field's file: "png", "npy", "txt". */
static const char *type_of(const struct pack_plan *plan, const struct pack_item *item,
                           uint32_t number)
{
    const struct stk_shard_field *field = &plan->fields[number];
    if (field->part == STOKER_NO_PART)
        return in_archive(plan) && pack_members_is_class(field) ? "cls" : "npy";
    const struct pack_piece *piece = &item->pieces[field->part];
    if (stk_shard_is_pixels(field))
        return stk_kinds[piece->codec].extensions[0];
    if (field->kind == STOKER_FIELD_KIND_ARRAY)
        return "npy";
    return ends_with(field->name, "json") ? "json" : is_text(piece) ? "txt" : "bin";
}

/* What follows the key and a dot in an archive. */
static void write_extension(const struct pack_plan *plan, uint32_t number, const char *type,
                            char *to, size_t bytes)
{
    const struct stk_shard_field *field = &plan->fields[number];
    const bool bare = is_first_image(plan, number) || pack_members_is_class(field) ||
                      (!stk_shard_is_pixels(field) && strcmp(field->name, type) == 0);
    const bool marked = field->kind == STOKER_FIELD_KIND_MASK && !sounds_like_mask(field->name);
    if (bare)
        (void)snprintf(to, bytes, "%s", type);
    else
        (void)snprintf(to, bytes, "%s%s.%s", field->name, marked ? ".mask" : "", type);
}

void pack_members_extension(const struct pack_plan *plan, const struct pack_item *item,
                            uint32_t number, char *to, size_t bytes)
{
    const char *type = type_of(plan, item, number);
    if (in_archive(plan))
        write_extension(plan, number, type, to, bytes);
    else
        (void)snprintf(to, bytes, "%s", type);
}

/* All extensions that the members of a field may have, as fields= lists them. */
static void write_alternatives(const struct pack_plan *plan, uint32_t number,
                               char to[ALTERNATIVES_BYTES])
{
    const char *of_pixels[STK_SHARD_CODECS + 1] = { NULL };
    static const char *const of_arrays[] = { "npy", NULL };
    static const char *const of_labels[] = { "cls", NULL };
    static const char *const of_json[] = { "json", NULL };
    static const char *const of_bytes[] = { "txt", "bin", NULL };
    const struct stk_shard_field *field = &plan->fields[number];
    const char *const *type = stk_shard_is_pixels(field)               ? of_pixels
                              : pack_members_is_class(field)           ? of_labels
                              : field->kind != STOKER_FIELD_KIND_BYTES ? of_arrays
                              : ends_with(field->name, "json")         ? of_json
                                                                       : of_bytes;
    const bool kept = plan->arguments->codec == PACK_KEEP;
    size_t used = 0;
    for (uint32_t codec = 0, kinds = 0; codec < STK_SHARD_CODECS; codec++)
        if (stk_kind_is_image(codec))
            of_pixels[kinds++] = stk_kinds[codec].extensions[0];
    to[0] = '\0';
    for (; *type != NULL; type++) {
        char one[STOKER_FIELD_NAME_BYTES + 16];
        const bool jpeg = strcmp(*type, "jpg") == 0 && field->kind == STOKER_FIELD_KIND_IMAGE &&
                          plan->arguments->codec == PACK_JPEG;
        if (stk_shard_is_pixels(field) && !kept && strcmp(*type, "png") != 0 && !jpeg)
            continue; /* not written */
        write_extension(plan, number, *type, one, sizeof(one));
        used += (size_t)snprintf(to + used, ALTERNATIVES_BYTES - used, "%s%s", used == 0 ? "" : ";",
                                 one);
    }
}

/* ---- what fits ------------------------------------------------------------------ */

static const char *unsuitable_in_archive(const struct pack_plan *plan, uint32_t number)
{
    char own[ALTERNATIVES_BYTES];
    char other[ALTERNATIVES_BYTES];
    const struct stk_shard_field *field = &plan->fields[number];
    if (field->kind == STOKER_FIELD_KIND_IMAGE && !is_first_image(plan, number) &&
        sounds_like_mask(field->name))
        return "an image whose name ends like a mask's: an archive would make it one";
    write_alternatives(plan, number, own);
    if (strlen(own) > EXTENSIONS_MAX)
        return "a field's name is too long for an archive";
    for (uint32_t i = 0; i < number; i++) {
        write_alternatives(plan, i, other);
        if (strcasecmp(own, other) == 0)
            return "the names of two fields are the same in an archive";
    }
    return NULL;
}

static const char *unsuitable_in_folder(const struct stk_shard_field *field)
{
    const bool mask = strncmp(field->name, "mask", 4) == 0 || strncmp(field->name, "seg", 3) == 0;
    if (stk_shard_is_pixels(field) && mask != (field->kind == STOKER_FIELD_KIND_MASK))
        return "in folders the name of a mask, and of no image, begins with mask or seg";
    return field->name[0] == '.' ? "a field's name begins with a dot" : NULL;
}

static const char *unsuitable_field(const struct pack_plan *plan, uint32_t number)
{
    const struct stk_shard_field *field = &plan->fields[number];
    const uint64_t channels = field->shape[2];
    const bool kept = plan->arguments->codec == PACK_KEEP && field->sizes_differ;
    if (field->kind == STOKER_FIELD_KIND_ARRAY && !pack_npy_has(field->dtype))
        return "NPY files have no bfloat16";
    if (stk_shard_is_pixels(field) && !kept &&
        (field->dtype != STOKER_DTYPE_UINT8 || field->rank != 3 ||
         (channels != 1 && channels != 3 && channels != 4)))
        return "an image that no file can hold: 8 bits and 1, 3 or 4 channels";
    if (field->kind == STOKER_FIELD_KIND_MASK && channels != 1)
        return "a mask of several channels";
    return in_archive(plan) ? unsuitable_in_archive(plan, number) : unsuitable_in_folder(field);
}

const char *pack_members_unsuitable(const struct pack_plan *plan)
{
    char spec[PACK_SPEC_BYTES];
    uint32_t members = 0;
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        const char *why = pack_members_is_key(plan, i) ? NULL : unsuitable_field(plan, i);
        if (why != NULL)
            return why;
        members += pack_members_is_key(plan, i) || pack_members_is_class(&plan->fields[i]) ? 0 : 1;
    }
    if (members == 0)
        return "no field that would make a file";
    if (plan->info->field_count > (in_archive(plan) ? FIELDS_MAX : FOLDERS_MAX))
        return "too many fields: an archive has up to 64, folders up to 32";
    return pack_members_spec(plan, spec) ? NULL : "too many, or too long, names";
}

/* ---- keys ----------------------------------------------------------------------- */

/* Returns NULL, or what is wrong with a component of a key; `last`: the one that gets the
 * extension. */
static const char *wrong_in_component(const struct pack_plan *plan, const char *at, size_t bytes,
                                      bool last)
{
    if (bytes == 0 || at[0] == '.')
        return "its key has an empty part, or one that begins with a dot";
    if (bytes > COMPONENT_MAX)
        return "its key is too long for a file's name";
    if (last && in_archive(plan) && memchr(at, '.', bytes) != NULL)
        return "its key has a dot, where an archive's keys end";
    for (size_t i = 0; i < bytes; i++)
        if ((uint8_t)at[i] < 0x20 || at[i] == 0x7F)
            return "its key has control characters";
    return NULL;
}

static const char *wrong_in_key(const struct pack_plan *plan, const char *key)
{
    for (;;) {
        const size_t bytes = strcspn(key, "/");
        const bool last = key[bytes] == '\0';
        const char *what = wrong_in_component(plan, key, bytes, last);
        if (what != NULL || last)
            return what;
        key += bytes + 1;
    }
}

const char *pack_members_key(const struct pack_plan *plan, const struct pack_item *item,
                             char key[PACK_KEY_BYTES])
{
    (void)snprintf(key, PACK_KEY_BYTES, "%010" PRIu64, item->id);
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        if (!pack_members_is_key(plan, i))
            continue;
        const struct pack_piece *piece = &item->pieces[plan->fields[i].part];
        if (piece->size == 0 || piece->size >= PACK_KEY_BYTES ||
            memchr(piece->bytes, '\0', piece->size) != NULL)
            return "its key is empty, too long, or has a 0";
        memcpy(key, piece->bytes, piece->size);
        key[piece->size] = '\0';
        return wrong_in_key(plan, key);
    }
    return NULL;
}

/* ---- the spec ------------------------------------------------------------------- */

struct text {
    char *at;
    size_t used, bytes;
};

__attribute__((format(printf, 2, 3))) static void append_text(struct text *text, const char *format,
                                                              ...)
{
    va_list list;
    va_start(list, format);
    const int more = vsnprintf(text->at + text->used, text->bytes - text->used, format, list);
    va_end(list);
    text->used += more < 0 ? 0 : (size_t)more;
    if (text->used >= text->bytes)
        text->used = text->bytes - 1; /* full: see pack_members_spec */
}

/* The size and channels of all images, which reading would have to find, or not find. */
static void put_shape(struct text *text, const struct pack_plan *plan, const char *before)
{
    const struct stk_shard_field *image = NULL;
    const struct stk_shard_field *pixels = NULL;
    bool one_size = true;
    bool one_depth = true;
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        const struct stk_shard_field *field = &plan->fields[i];
        if (!stk_shard_is_pixels(field))
            continue;
        pixels = pixels == NULL ? field : pixels;
        one_size = one_size && !field->sizes_differ && field->shape[0] == pixels->shape[0] &&
                   field->shape[1] == pixels->shape[1];
        if (field->kind == STOKER_FIELD_KIND_IMAGE) {
            image = image == NULL ? field : image;
            one_depth = one_depth && field->shape[2] == image->shape[2];
        }
    }
    if (pixels != NULL && one_size)
        append_text(text, "%sheight=%" PRIu64 "&width=%" PRIu64, before, pixels->shape[0],
                    pixels->shape[1]);
    if (image != NULL && one_depth)
        append_text(text, "%schannels=%" PRIu64, pixels != NULL && one_size ? "&" : before,
                    image->shape[2]);
}

static void put_archive(struct text *text, const struct pack_plan *plan)
{
    append_text(text, "tar:%s?fields=", plan->arguments->target);
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        char alternatives[ALTERNATIVES_BYTES];
        write_alternatives(plan, i, alternatives);
        append_text(text, "%s%s=%s", i == 0 ? "" : ",", plan->fields[i].name,
                    pack_members_is_key(plan, i) ? "__key__" : alternatives);
    }
    put_shape(text, plan, "&");
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        const struct stk_shard_field *field = &plan->fields[i];
        if (pack_members_is_class(field) && field->class_count > 0 &&
            field->class_count <= CLASSES_MAX)
            append_text(text, "&classes=%" PRIu32, field->class_count);
    }
}

static void put_folders(struct text *text, const struct pack_plan *plan)
{
    const char *before = "folder:";
    bool has_key = false;
    if (pack_members_by_class(plan)) {
        append_text(text, "folder:%s", plan->arguments->target);
        put_shape(text, plan, "?");
        return;
    }
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        has_key = has_key || pack_members_is_key(plan, i);
        if (pack_members_is_key(plan, i))
            continue;
        append_text(text, "%s%s=%s/%s", before, plan->fields[i].name, plan->arguments->target,
                    plan->fields[i].name);
        before = ",";
    }
    if (has_key)
        append_text(text, "?key=1");
    put_shape(text, plan, has_key ? "&" : "?");
}

bool pack_members_spec(const struct pack_plan *plan, char spec[PACK_SPEC_BYTES])
{
    struct text text = { .at = spec, .bytes = PACK_SPEC_BYTES };
    (in_archive(plan) ? put_archive : put_folders)(&text, plan);
    const char *list = in_archive(plan) ? strstr(spec, "?fields=") : NULL;
    return text.used < text.bytes - 1 && (list == NULL || strcspn(list + 8, "&") <= LIST_MAX);
}
