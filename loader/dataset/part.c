/* part.c - see part.h. */
#include "loader/dataset/part.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "loader/codec/refuse.h"

/* A raw field that varies is its part's only one, so all bytes are its own. */
static int measure_varying(const struct stk_field *field, size_t size, stoker_row *row,
                           stoker_error *said)
{
    if (size > field->bytes)
        return stk_refuse(said, STOKER_ELIMIT, "field \"%s\": %zu bytes, at most %zu",
                          field->info.name, size, field->bytes);
    if (size % field->entry_bytes != 0)
        return stk_refuse(said, STOKER_EFORMAT, "field \"%s\": %zu bytes are no multiple of %zu",
                          field->info.name, size, field->entry_bytes);
    row->length = size / field->entry_bytes;
    return 0;
}

int stk_part_raw(const stoker_dataset *dataset, uint32_t part, const void *bytes, size_t size,
                 stoker_row *rows, stoker_error *said)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    uint8_t *at = (uint8_t *)bytes; /* the caller only reads them */
    size_t expected = 0;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        rows[i].data = at == NULL ? NULL : at + expected; /* NULL: a part of no bytes */
        if (dataset->fields[i].info.varies)
            return measure_varying(&dataset->fields[i], size, &rows[i], said);
        expected += dataset->fields[i].bytes;
    }
    return size == expected
               ? 0
               : stk_refuse(said, STOKER_EFORMAT, "%zu bytes for a row of %zu", size, expected);
}

static int copy_raw(const stoker_dataset *dataset, uint32_t part, const stoker_encoded *in,
                    stoker_row *rows, stoker_error *said)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    stoker_row from[STOKER_FIELDS_MAX];
    const int rc = stk_part_raw(dataset, part, in->bytes, in->size, from, said);
    for (uint32_t i = own.first; rc == 0 && i < own.first + own.count; i++) {
        const struct stk_field *field = &dataset->fields[i];
        if (from[i].data != NULL)
            memcpy(rows[i].data, from[i].data, field->info.varies ? in->size : field->bytes);
        if (field->info.varies)
            rows[i].length = from[i].length;
    }
    return rc;
}

/* Returns 0 if the codec kept within the room that it was given. */
static int check_lengths(const struct stk_field *fields, uint32_t count, const stoker_row *rows,
                         const char *codec, stoker_error *said)
{
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].info.varies && rows[i].length > fields[i].info.shape[0])
            return stk_refuse(said, STOKER_EFORMAT,
                              "field \"%s\": codec %s reports length %" PRIu64 ", at most %" PRIu64,
                              fields[i].info.name, codec, rows[i].length, fields[i].info.shape[0]);
    return 0;
}

int stk_part_check(const stoker_dataset *dataset, uint32_t part, const stoker_codec *codec,
                   const stoker_row *rows, stoker_error *said)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    return check_lengths(&dataset->fields[own.first], own.count, &rows[own.first], codec->name,
                         said);
}

/* The reason why a codec cannot decode a part; NULL = it can. */
static const char *lack_of(const stoker_codec *codec, bool one_array)
{
    const uint64_t known = STOKER_CODEC_ROW | STOKER_CODEC_FIELDS | STOKER_CODEC_RUNS |
                           STOKER_CODEC_ANY_SIZE | STOKER_CODEC_FILE;
    if (!stk_struct_fits(codec, STK_SIZE_UP_TO(stoker_codec, verify), sizeof(*codec)))
        return "struct_size is not set, or it has functions that this version does not know";
    if (codec->name == NULL)
        return "name is NULL";
    if ((codec->flags & ~known) != 0)
        return "it has flags that this version does not know";
    if (codec->decode == NULL)
        return "decode is NULL";
    if (!one_array && (codec->flags & STOKER_CODEC_FIELDS) == 0)
        return "a part of several fields, or one that varies, needs STOKER_CODEC_FIELDS";
    if ((codec->flags & STOKER_CODEC_FILE) != 0 && codec->probe == NULL)
        return "STOKER_CODEC_FILE is set, but probe is NULL";
    return NULL;
}

static int refuse_part(const stoker_dataset *dataset, uint64_t id, uint32_t part, const char *codec,
                       const char *what, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    const char *field = dataset->fields[dataset->part_fields[part].first].info.name;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, &place,
                         "%s: part %" PRIu32 ", field \"%s\": %s%s", dataset->ops->name, part,
                         field, codec, what);
}

static int check_parts(const stoker_dataset *dataset, const uint64_t *ids, uint32_t count,
                       const stoker_part *parts, stoker_error *error)
{
    const uint32_t part_count = dataset->info.part_count;
    for (uint32_t part = 0; part < part_count; part++) {
        const struct stk_part_fields own = dataset->part_fields[part];
        const bool one_array = own.count == 1 && !dataset->fields[own.first].info.varies;
        const stoker_codec *checked = NULL;
        for (uint32_t i = 0; i < count; i++) {
            const stoker_part *at = &parts[i * part_count + part];
            if ((at->flags & ~STOKER_PART_RANGE) != 0)
                return refuse_part(dataset, ids[i], part, "",
                                   "locate() set flags that this version does not know", error);
            if (at->codec == checked || at->codec == NULL)
                continue;
            checked = at->codec;
            const char *lack = lack_of(checked, one_array);
            if (lack == NULL)
                continue;
            char codec[96];
            (void)snprintf(codec, sizeof(codec), "codec %.64s: ",
                           checked->name != NULL ? checked->name : "without a name");
            return refuse_part(dataset, ids[i], part, codec, lack, error);
        }
    }
    return 0;
}

/* A callback of the data set failed: say for which samples. */
static int callback_failed(const stoker_dataset *dataset, int rc, const char *call,
                           const uint64_t *ids, uint32_t count, stoker_error *said,
                           stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    char others[64] = "";
    if (said->code == rc) { /* one of our own formats filled it in completely */
        if (error != NULL)
            *error = *said;
        return rc;
    }
    const int code = stk_callback_code(rc, call, said);
    place.sample = ids[0];
    if (count > 1)
        (void)snprintf(others, sizeof(others),
                       "or one of the next %" PRIu32 " in its batch: ", count - 1);
    if (code != rc)
        return stk_error_set(error, code, STOKER_STAGE_LOCATE, &place, "%s%s: %s", others,
                             dataset->ops->name, said->message);
    return stk_error_set(error, code, STOKER_STAGE_LOCATE, &place, "%s%s: %s failed%s%s", others,
                         dataset->ops->name, call, ": ",
                         said->message[0] != '\0' ? said->message : stoker_strerror(code));
}

int stk_parts_locate(const stoker_dataset *dataset, const uint64_t *ids, uint32_t count,
                     stoker_part *parts, stoker_error *error)
{
    stoker_error said;
    stk_error_clear(&said);
    const int rc = dataset->ops->locate(dataset->self, ids, count, parts, &said);
    return rc == 0 ? check_parts(dataset, ids, count, parts, error)
                   : callback_failed(dataset, rc, "locate()", ids, count, &said, error);
}

int stk_parts_values(const stoker_dataset *dataset, uint32_t field, const uint64_t *ids,
                     uint32_t count, void *out, stoker_error *error)
{
    const int rc = dataset->ops->values(dataset->self, field, ids, count, out);
    if (rc == 0)
        return 0;
    char call[STOKER_FIELD_NAME_BYTES + 32];
    stoker_error said = { .message = "" };
    (void)snprintf(call, sizeof(call), "values() of field \"%s\"",
                   dataset->fields[field].info.name);
    return callback_failed(dataset, rc, call, ids, count, &said, error);
}

int stk_part_decode(const stoker_dataset *dataset, uint32_t part, const stoker_codec *codec,
                    void *scratch, const stoker_encoded *in, stoker_row *rows, stoker_error *said)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    const struct stk_field *fields = &dataset->fields[own.first];
    const stoker_decoded out = { .struct_size = sizeof(out),
                                 .rows = &rows[own.first],
                                 .field_count = own.count,
                                 .sample_count = 1 };
    if (codec == NULL)
        return copy_raw(dataset, part, in, rows, said);
    const int rc =
        stk_callback_code(codec->decode(codec->self, scratch, in, &out, said), "decode()", said);
    return rc < 0 ? rc : check_lengths(fields, own.count, out.rows, codec->name, said);
}
