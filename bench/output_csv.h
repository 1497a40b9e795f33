/* output_csv.h - a field as CSV (RFC 4180) writes it. */
#ifndef BENCH_OUTPUT_CSV_H
#define BENCH_OUTPUT_CSV_H

#include <stdio.h>

/* In quotes if it holds a comma, a quote or a line break; quotes are doubled. */
void bench_csv_text(FILE *file, const char *text);

#endif
