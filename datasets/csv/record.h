/* record.h - split a CSV file into records and fields, and report errors by line and column. */
#ifndef STK_DATASETS_CSV_RECORD_H
#define STK_DATASETS_CSV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

/* A whole file in memory. */
struct stk_csv_text {
    const char *path; /* for messages */
    const char *bytes;
    size_t size;
    char delimiter;
    stoker_error *error;
};

/* Without surrounding spaces and quotes; a quote inside is still doubled. */
struct stk_csv_field {
    const char *bytes;
    size_t size;
    uint64_t line; /* where it starts, from 1 */
    bool quoted;
};

struct stk_csv_reader {
    const struct stk_csv_text *text;
    size_t at;     /* the next byte */
    uint64_t line; /* its line, from 1 */
};

/* Start at the first record, after a byte order mark. STOKER_EFORMAT: UTF-16. */
int stk_csv_begin(struct stk_csv_reader *reader, const struct stk_csv_text *text);

/* Read the next record; blank lines are skipped. Keeps at most `capacity` fields; *count is the
 * number of fields in the record. STOKER_FINISHED: no record is left. STOKER_EFORMAT: a NUL byte or
 * text after a closing quote; STOKER_ETRUNCATED: the file ends within quotes. */
int stk_csv_next(struct stk_csv_reader *reader, struct stk_csv_field *fields, uint32_t capacity,
                 uint32_t *count);

/* Set the error "PATH: offset O: line L, column C: ..." and return code. Columns count from 1; 0 =
 * no column. */
int stk_csv_fail(const struct stk_csv_text *text, int code, const struct stk_csv_field *field,
                 uint32_t column, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Returns true if the field, with doubled quotes undone, equals name[0..name_bytes). */
bool stk_csv_equals(const struct stk_csv_field *field, const char *name, size_t name_bytes);

/* Copy the field, with doubled quotes undone, to out, which has room for field->size bytes. Returns
 * the bytes written. */
size_t stk_csv_text_of(const struct stk_csv_field *field, char *out);

/* Copy the field for a message, truncated if long; stk_csv_fail makes it printable. Returns quoted. */
enum { STK_CSV_QUOTED_BYTES = 40 };
const char *stk_csv_quote(const struct stk_csv_field *field, char quoted[STK_CSV_QUOTED_BYTES]);

#endif
