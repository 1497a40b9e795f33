/* output.h - the interface of the output formats.
 *
 *   start --> cell* --> ceiling* --> advice --> finish
 *
 * A form prints each row when it is measured, so that a long sweep can be read while it runs.
 */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include "bench/loaderbench/arguments.h"
#include "bench/loaderbench/result.h"

#include "loader/base/io/output_file.h"

#include <stdio.h>

enum { BENCH_COLUMNS_NARROW = 80, BENCH_COLUMNS_WIDE = 120 };

struct bench_sheet {
    const struct bench_form *form;
    FILE *file;
    uint32_t columns;                    /* width of the table: BENCH_COLUMNS_NARROW or _WIDE */
    bool colors;                         /* the file is a terminal that shows them */
    double best_samples_per_s;           /* table: of the cells that are printed together */
    uint64_t samples;                    /* in an epoch */
    const struct bench_machine *machine; /* from start on */
    uint64_t cells;                      /* rows of this kind printed so far */
    uint64_t ceilings;
    char group[64]; /* table: what the cells under the last header share */
};

struct bench_form {
    const char *name;
    void (*start)(struct bench_sheet *sheet, const struct bench_machine *machine);
    void (*cell)(struct bench_sheet *sheet, const struct bench_cell *cell);
    void (*ceiling)(struct bench_sheet *sheet, const struct bench_ceiling_row *row);
    /* best: the number of the recommended cell among those printed, from 0, if there is one */
    void (*advice)(struct bench_sheet *sheet, const struct bench_advice *advice, uint64_t best);
    void (*finish)(struct bench_sheet *sheet);
};

extern const struct bench_form bench_form_table;
extern const struct bench_form bench_form_csv;
extern const struct bench_form bench_form_json;
extern const struct bench_form bench_form_html;

const struct bench_form *bench_form_of(enum bench_format format);

/* Writes a number with three digits and k, M, G or T to out: "3.74 M"; "-" for NaN. Returns out. */
const char *bench_short_number(char out[16], double value);

/* True if `file` is a terminal, and NO_COLOR is not set (https://no-color.org). */
bool bench_shows_colors(FILE *file);

/* Where a sheet is written: standard output or `path`. A regular file is replaced when all is
 * written, anything else is written to (loader/base/io/output_file.h). */
struct bench_target {
    FILE *file;
    const char *path; /* NULL = standard output */
    struct stk_output output;
};

/* STOKER_EINVAL and errno if the file cannot be created; stk_output_reason() explains the errno. */
int bench_target_open(struct bench_target *out, const char *path);

/* keep = false leaves no file. STOKER_EIO and errno if a write failed; a regular file is then
 * unchanged. */
int bench_target_close(struct bench_target *target, bool keep);

#endif
