/* fields.h - the names of all measured values, for CSV and JSON. */
#ifndef BENCH_OUTPUT_FIELDS_H
#define BENCH_OUTPUT_FIELDS_H

#include "bench/loaderbench/result.h"

#include <stddef.h>
#include <stdio.h>

enum bench_field_kind {
    BENCH_TEXT,   /* char array */
    BENCH_NUMBER, /* double */
    BENCH_COUNT64,
    BENCH_COUNT32,
    BENCH_SIGNED32,
    BENCH_BOOL
};

struct bench_field {
    const char *name;
    enum bench_field_kind kind;
    size_t offset;
};

extern const struct bench_field bench_machine_fields[];
extern const size_t bench_machine_field_count;
extern const struct bench_field bench_cell_fields[];
extern const size_t bench_cell_field_count;
extern const struct bench_field bench_ceiling_fields[];
extern const size_t bench_ceiling_field_count;

/* Prints a JSON string; bytes that are not UTF-8 become U+FFFD. */
void bench_json_string(FILE *file, const char *text);

/* Prints a number with nine digits; NaN and infinity as `missing`. */
void bench_print_number(FILE *file, double value, const char *missing);

/* Prints a field other than text of the row at `base`; a missing number as `missing`. */
void bench_print_field(FILE *file, const struct bench_field *field, const char *base,
                       const char *missing);

#endif
