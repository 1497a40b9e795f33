/* record.c - see record.h.
 *
 *   record   field { delimiter field } line-end        line-end: LF, CRLF, CR or the end
 *   field    spaces plain spaces                       plain: no delimiter, no line-end
 *            spaces "any, "" for a quote" spaces       any: line breaks and delimiters too
 */
#include "datasets/csv/record.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "datasets/source.h"

/* ---- messages ------------------------------------------------------------------- */

int stk_csv_fail(const struct stk_csv_text *text, int code, const struct stk_csv_field *field,
                 uint32_t column, const char *format, ...)
{
    char what[STK_LINE_BYTES];
    char where[64] = "";
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    struct stk_place place = stk_at(text->path, STOKER_NO_OFFSET);
    if (field != NULL) {
        place.offset = (uint64_t)(field->bytes - text->bytes);
        int used = snprintf(where, sizeof(where), "line %llu", (unsigned long long)field->line);
        if (column != 0)
            used += snprintf(where + used, sizeof(where) - (size_t)used, ", column %u", column);
        (void)snprintf(where + used, sizeof(where) - (size_t)used, ": ");
    }
    return stk_error_set(text->error, code, STOKER_STAGE_OPEN, &place, "%s%s", where, what);
}

const char *stk_csv_quote(const struct stk_csv_field *field, char quoted[STK_CSV_QUOTED_BYTES])
{
    const size_t most = STK_CSV_QUOTED_BYTES - 4; /* "..." and the final 0 */
    const bool cut = field->size > most;
    (void)snprintf(quoted, STK_CSV_QUOTED_BYTES, "%.*s%s", (int)(cut ? most : field->size),
                   field->bytes, cut ? "..." : "");
    return quoted;
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

size_t stk_csv_text_of(const struct stk_csv_field *field, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < field->size; i++) {
        out[used++] = field->bytes[i];
        if (field->quoted && field->bytes[i] == '"')
            i++; /* its double */
    }
    return used;
}

/* ---- fields --------------------------------------------------------------------- */

static bool at_end(const struct stk_csv_reader *reader)
{
    return reader->at == reader->text->size;
}

static char peek(const struct stk_csv_reader *reader)
{
    assert(!at_end(reader));
    return reader->text->bytes[reader->at];
}

static bool is_space(const struct stk_csv_reader *reader, char byte)
{
    return (byte == ' ' || byte == '\t') && byte != reader->text->delimiter;
}

static bool is_line_end(char byte)
{
    return byte == '\n' || byte == '\r';
}

static void skip_spaces(struct stk_csv_reader *reader)
{
    while (!at_end(reader) && is_space(reader, peek(reader)))
        reader->at++;
}

/* Step over LF, CRLF or CR. */
static void skip_line_end(struct stk_csv_reader *reader)
{
    bool carriage = peek(reader) == '\r';
    reader->at++;
    if (carriage && !at_end(reader) && peek(reader) == '\n')
        reader->at++;
    reader->line++;
}

static int fail_here(const struct stk_csv_reader *reader, int code, uint32_t column,
                     const char *what)
{
    const struct stk_csv_field here = { .bytes = reader->text->bytes + reader->at,
                                        .line = reader->line };
    return stk_csv_fail(reader->text, code, &here, column, "%s", what);
}

static int read_plain(struct stk_csv_reader *reader, uint32_t column, struct stk_csv_field *out)
{
    size_t begin = reader->at;
    while (!at_end(reader) && peek(reader) != reader->text->delimiter &&
           !is_line_end(peek(reader))) {
        if (peek(reader) == '\0')
            return fail_here(reader, STOKER_EFORMAT, column, "a NUL byte: not a text file");
        reader->at++;
    }
    size_t end = reader->at;
    while (end > begin && is_space(reader, reader->text->bytes[end - 1]))
        end--;
    out->bytes = reader->text->bytes + begin;
    out->size = end - begin;
    return STOKER_OK;
}

static int read_quoted(struct stk_csv_reader *reader, uint32_t column, struct stk_csv_field *out)
{
    const struct stk_csv_reader opening = *reader;
    reader->at++;
    const size_t begin = reader->at;
    for (;;) {
        if (at_end(reader))
            return fail_here(&opening, STOKER_ETRUNCATED, column, "this quote is never closed");
        char byte = peek(reader);
        if (byte == '"') {
            if (reader->at + 1 == reader->text->size || reader->text->bytes[reader->at + 1] != '"')
                break;
            reader->at += 2;
        } else if (is_line_end(byte)) {
            skip_line_end(reader);
        } else if (byte == '\0') {
            return fail_here(reader, STOKER_EFORMAT, column, "a NUL byte: not a text file");
        } else {
            reader->at++;
        }
    }
    out->quoted = true;
    out->bytes = reader->text->bytes + begin;
    out->size = reader->at - begin;
    reader->at++;
    skip_spaces(reader);
    if (!at_end(reader) && peek(reader) != reader->text->delimiter && !is_line_end(peek(reader)))
        return fail_here(reader, STOKER_EFORMAT, column, "text after the closing quote");
    return STOKER_OK;
}

static int read_field(struct stk_csv_reader *reader, uint32_t column, struct stk_csv_field *out)
{
    skip_spaces(reader);
    *out = (struct stk_csv_field){ .line = reader->line };
    if (!at_end(reader) && peek(reader) == '"')
        return read_quoted(reader, column, out);
    return read_plain(reader, column, out);
}

/* ---- records -------------------------------------------------------------------- */

int stk_csv_begin(struct stk_csv_reader *reader, const struct stk_csv_text *text)
{
    *reader = (struct stk_csv_reader){ .text = text, .line = 1 };
    if (text->size >= 3 && memcmp(text->bytes, "\xEF\xBB\xBF", 3) == 0)
        reader->at = 3;
    if (text->size >= 2 &&
        (memcmp(text->bytes, "\xFF\xFE", 2) == 0 || memcmp(text->bytes, "\xFE\xFF", 2) == 0))
        return fail_here(reader, STOKER_EFORMAT, 0, "this is UTF-16; write the file as UTF-8");
    return STOKER_OK;
}

/* Step over lines with nothing but spaces. */
static void skip_blank_lines(struct stk_csv_reader *reader)
{
    for (;;) {
        const struct stk_csv_reader before = *reader;
        skip_spaces(reader);
        if (at_end(reader))
            return;
        if (!is_line_end(peek(reader))) {
            *reader = before;
            return;
        }
        skip_line_end(reader);
    }
}

int stk_csv_next(struct stk_csv_reader *reader, struct stk_csv_field *fields, uint32_t capacity,
                 uint32_t *count)
{
    skip_blank_lines(reader);
    if (at_end(reader))
        return STOKER_FINISHED;
    for (uint32_t column = 0;; column++) {
        struct stk_csv_field field;
        if (column == UINT32_MAX)
            return fail_here(reader, STOKER_ELIMIT, 0, "too many columns");
        int rc = read_field(reader, column + 1, &field);
        if (rc != STOKER_OK)
            return rc;
        if (column < capacity)
            fields[column] = field;
        *count = column + 1;
        if (at_end(reader))
            return STOKER_OK;
        if (is_line_end(peek(reader))) {
            skip_line_end(reader);
            return STOKER_OK;
        }
        reader->at++; /* the delimiter */
    }
}
