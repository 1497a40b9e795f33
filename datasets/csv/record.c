/* record.c - see record.h.
 *
 *   record   field { delimiter field } line-end        line-end: LF, CRLF, CR or the end
 *   field    spaces plain spaces                       plain: no delimiter, no line-end
 *            spaces "any, "" for a quote" spaces       any: line breaks and delimiters too
 */
#include "datasets/csv/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"

int stk_csv_fail(const struct stk_csv_reader *reader, int code, const struct stk_csv_field *field,
                 uint32_t column, const char *format, ...)
{
    char what[STK_LINE_BYTES];
    char where[64] = "";
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (field == NULL)
        return stk_refuse_file(reader->error, code, reader->path, STOKER_NO_OFFSET, "%s", what);
    if (column == 0)
        (void)snprintf(where, sizeof(where), "line %llu", (unsigned long long)field->line);
    else
        (void)snprintf(where, sizeof(where), "line %llu, column %u",
                       (unsigned long long)field->line, column);
    return stk_refuse_file(reader->error, code, reader->path,
                           (uint64_t)(field->bytes - reader->bytes), "%s: %s", where, what);
}

bool stk_csv_equals(const struct stk_csv_field *field, const char *name, size_t name_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < field->size; i++, at++) {
        if (at >= name_bytes || field->bytes[i] != name[at])
            return false;
        if (field->quoted && field->bytes[i] == '"')
            i++; /* its double */
    }
    return at == name_bytes;
}

/* ---- fields --------------------------------------------------------------------- */

/* The next byte, or -1 at the end. */
static int peek_byte(const struct stk_csv_reader *reader)
{
    return reader->at == reader->size ? -1 : (unsigned char)reader->bytes[reader->at];
}

static bool is_space(const struct stk_csv_reader *reader, int byte)
{
    return (byte == ' ' || byte == '\t') && byte != reader->delimiter;
}

static bool is_line_end(int byte)
{
    return byte == '\n' || byte == '\r';
}

static bool ends_field(const struct stk_csv_reader *reader)
{
    const int byte = peek_byte(reader);
    return byte == -1 || byte == (unsigned char)reader->delimiter || is_line_end(byte);
}

static void skip_spaces(struct stk_csv_reader *reader)
{
    while (is_space(reader, peek_byte(reader)))
        reader->at++;
}

/* Step over LF, CRLF or CR. */
static void skip_line_end(struct stk_csv_reader *reader)
{
    const bool carriage = peek_byte(reader) == '\r';
    reader->at++;
    if (carriage && peek_byte(reader) == '\n')
        reader->at++;
    reader->line++;
}

static int fail_here(const struct stk_csv_reader *reader, int code, uint32_t column,
                     const char *what)
{
    const struct stk_csv_field here = { .bytes = reader->bytes + reader->at, .line = reader->line };
    return stk_csv_fail(reader, code, &here, column, "%s", what);
}

static int read_plain(struct stk_csv_reader *reader, uint32_t column, struct stk_csv_field *out)
{
    const size_t begin = reader->at;
    for (; !ends_field(reader); reader->at++)
        if (peek_byte(reader) == '\0')
            return fail_here(reader, STOKER_EFORMAT, column, "a NUL byte: not a text file");
    size_t end = reader->at;
    while (end > begin && is_space(reader, reader->bytes[end - 1]))
        end--;
    out->bytes = reader->bytes + begin;
    out->size = end - begin;
    return STOKER_OK;
}

static int read_quoted(struct stk_csv_reader *reader, uint32_t column, struct stk_csv_field *out)
{
    const struct stk_csv_reader opening = *reader;
    const size_t begin = ++reader->at;
    for (;;) {
        const int byte = peek_byte(reader);
        if (byte == -1)
            return fail_here(&opening, STOKER_ETRUNCATED, column, "this quote is never closed");
        if (byte == '\0')
            return fail_here(reader, STOKER_EFORMAT, column, "a NUL byte: not a text file");
        if (is_line_end(byte)) {
            skip_line_end(reader);
            continue;
        }
        reader->at++;
        if (byte == '"' && peek_byte(reader) != '"')
            break;
        if (byte == '"')
            reader->at++;
    }
    out->quoted = true;
    out->bytes = reader->bytes + begin;
    out->size = reader->at - 1 - begin;
    skip_spaces(reader);
    return ends_field(reader)
               ? STOKER_OK
               : fail_here(reader, STOKER_EFORMAT, column, "text after the closing quote");
}

static int read_field(struct stk_csv_reader *reader, uint32_t column, struct stk_csv_field *out)
{
    skip_spaces(reader);
    *out = (struct stk_csv_field){ .line = reader->line };
    return peek_byte(reader) == '"' ? read_quoted(reader, column, out)
                                    : read_plain(reader, column, out);
}

/* ---- records -------------------------------------------------------------------- */

int stk_csv_begin(struct stk_csv_reader *reader)
{
    reader->at = 0;
    reader->line = 1;
    if (reader->size >= 3 && memcmp(reader->bytes, "\xEF\xBB\xBF", 3) == 0)
        reader->at = 3;
    if (reader->size >= 2 &&
        (memcmp(reader->bytes, "\xFF\xFE", 2) == 0 || memcmp(reader->bytes, "\xFE\xFF", 2) == 0))
        return fail_here(reader, STOKER_EFORMAT, 0, "this is UTF-16; write the file as UTF-8");
    return STOKER_OK;
}

int stk_csv_next(struct stk_csv_reader *reader, struct stk_csv_field *fields, uint32_t capacity,
                 uint32_t *count)
{
    size_t begin; /* where the line begins, with its spaces: one may be the delimiter */
    for (;;) {
        begin = reader->at;
        skip_spaces(reader);
        if (!is_line_end(peek_byte(reader)))
            break;
        skip_line_end(reader);
    }
    if (peek_byte(reader) == -1)
        return STOKER_FINISHED;
    reader->at = begin;
    for (uint32_t column = 0; column < UINT32_MAX; column++) {
        struct stk_csv_field field;
        const int rc = read_field(reader, column + 1, &field);
        if (rc != STOKER_OK)
            return rc;
        if (column < capacity)
            fields[column] = field;
        *count = column + 1;
        if (peek_byte(reader) == -1)
            return STOKER_OK;
        if (is_line_end(peek_byte(reader))) {
            skip_line_end(reader);
            return STOKER_OK;
        }
        reader->at++; /* the delimiter */
    }
    return fail_here(reader, STOKER_ELIMIT, 0, "too many columns");
}
