/* record.h - split a CSV file in memory into records and fields. */
#ifndef STK_DATASETS_CSV_RECORD_H
#define STK_DATASETS_CSV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

/* Without surrounding spaces and quotes; a quote inside is still doubled. */
struct stk_csv_field {
    const char *bytes;
    size_t size;
    uint64_t line; /* where it starts, from 1 */
    bool quoted;
};

struct stk_csv_reader {
    const char *path; /* for messages */
    const char *bytes;
    size_t size;
    char delimiter;
    stoker_error *error;
    size_t at;     /* the next byte */
    uint64_t line; /* its line, from 1 */
};

/* Go to the first record, behind a byte order mark. STOKER_EFORMAT: the file is UTF-16. */
int stk_csv_begin(struct stk_csv_reader *reader);

/* Read the next record; skip blank lines. Keep at most `capacity` fields; *count is the number of
 * fields in the record. STOKER_FINISHED: no record is left. STOKER_EFORMAT: a NUL byte or text
 * after a closing quote; STOKER_ETRUNCATED: the file ends within quotes. */
int stk_csv_next(struct stk_csv_reader *reader, struct stk_csv_field *fields, uint32_t capacity,
                 uint32_t *count);

/* Set the error "PATH: offset O: line L, column C: ..." and return code. field NULL = the whole
 * file; column counts from 1, 0 = the whole record. */
int stk_csv_fail(const struct stk_csv_reader *reader, int code, const struct stk_csv_field *field,
                 uint32_t column, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Returns true if the field, with doubled quotes undone, equals name[0..name_bytes). */
bool stk_csv_equals(const struct stk_csv_field *field, const char *name, size_t name_bytes);

#endif
