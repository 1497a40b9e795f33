/* option_table.h - what an option is called, what kind of value it takes, between which bounds, where that
 * goes, and what --help tells about it: one row for each, for all programs.
 */
#ifndef STK_PROGRAMS_OPTION_TABLE_H
#define STK_PROGRAMS_OPTION_TABLE_H

#include <stddef.h>

#include "trainer/programs/arguments.h"

enum kind {
    COUNT32,
    COUNT64,
    REAL,
    BYTES, /* a count with K, M, G or T behind it */
    TEXT,
    FLAG,
    WORD,       /* one of row.words, kept as its index */
    BATCH_SIZE, /* a count, or max */
    WORKERS,    /* a count, or auto */
    PAIR,       /* two reals */
    ACTION      /* sets row.min */
};

struct option_row {
    const char *name; /* NULL: help is the title of the rows that follow */
    char letter;
    unsigned programs;
    enum kind kind;
    size_t at;       /* where in struct arguments */
    double min, max; /* of a number */
    const char *value;
    const char *const *words;
    const char *help;
    const char *unset; /* the default in words, where the presets have nothing, or 0 */
};

enum { OPTION_ROWS_MAX = 64 }; /* the bits of arguments.given */

extern const struct option_row option_rows[];
extern const size_t option_row_count;

#endif
