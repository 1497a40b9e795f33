/* part.c - see part.h. */
#include "loader/dataset/part.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int refuse(int code, stoker_error *said,
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(said->message, sizeof(said->message), format, arguments);
    va_end(arguments);
    return code;
}

/* A raw field that varies is its part's only one, so all bytes are its own. */
static int copy_varying(const struct stk_field *field, const stoker_encoded *in, stoker_row *row,
                        stoker_error *said)
{
    if (in->size > row->bytes_max)
        return refuse(STOKER_ELIMIT, said, "field \"%s\": %zu bytes, at most %zu", field->info.name,
                      in->size, row->bytes_max);
    if (in->size % field->entry_bytes != 0)
        return refuse(STOKER_EFORMAT, said, "field \"%s\": %zu bytes are no multiple of %zu",
                      field->info.name, in->size, field->entry_bytes);
    if (in->size > 0)
        memcpy(row->data, in->bytes, in->size);
    row->length = in->size / field->entry_bytes;
    return 0;
}

static int copy_raw(const struct stk_field *fields, uint32_t count, const stoker_encoded *in,
                    stoker_row *rows, stoker_error *said)
{
    if (fields[0].info.varies)
        return copy_varying(&fields[0], in, &rows[0], said);
    size_t expected = 0;
    for (uint32_t i = 0; i < count; i++)
        expected += fields[i].bytes;
    if (in->size != expected)
        return refuse(STOKER_EFORMAT, said, "%zu bytes for a row of %zu", in->size, expected);
    const uint8_t *from = in->bytes;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(rows[i].data, from, fields[i].bytes);
        from += fields[i].bytes;
    }
    return 0;
}

/* Returns 0 if the codec kept within the room that it was given. */
static int check_lengths(const struct stk_field *fields, uint32_t count, const stoker_row *rows,
                         const char *codec, stoker_error *said)
{
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].info.varies && rows[i].length > fields[i].info.shape[0])
            return refuse(STOKER_EFORMAT, said,
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

int stk_part_decode(const stoker_dataset *dataset, uint32_t part, const stoker_codec *codec,
                    void *scratch, const stoker_encoded *in, stoker_row *rows, stoker_error *said)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    const struct stk_field *fields = &dataset->fields[own.first];
    stoker_row *first = &rows[own.first];
    if (codec == NULL)
        return copy_raw(fields, own.count, in, first, said);
    const char *call = "decode()";
    int rc;
    if (own.count == 1 && !fields[0].info.varies) {
        rc = codec->decode(codec->self, scratch, in, first->data, first->bytes_max, said);
    } else if (codec->decode_fields != NULL) {
        call = "decode_fields()";
        rc = codec->decode_fields(codec->self, scratch, in, first, own.count, said);
    } else {
        return refuse(STOKER_ENOTSUP, said,
                      "it has no decode_fields(), which several fields, or one that varies, need");
    }
    if (rc > 0)
        return refuse(STOKER_EINVAL, said, "%s returned %d, which is neither 0 nor an error", call,
                      rc);
    return rc < 0 ? rc : check_lengths(fields, own.count, first, codec->name, said);
}
