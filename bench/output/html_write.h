/* html_write.h - the pieces of the page, each of which writes itself. */
#ifndef BENCH_OUTPUT_HTML_WRITE_H
#define BENCH_OUTPUT_HTML_WRITE_H

#include "bench/result.h"

#include <stdio.h>

/* The style element, of the whole page, light and dark. */
void bench_html_style(FILE *file);

/* Text as a page may hold it: markup is escaped, what is no printable UTF-8 becomes U+FFFD. */
void bench_html_text(FILE *file, const char *text);

/* The cells of a chart: those that differ from the best one in workers and pin_memory alone, by workers. */
enum { BENCH_CHART_CELLS = 512 };

struct bench_chart {
    const struct bench_report *report;
    bool first; /* of first epochs; else of later ones, or of all */
    const struct bench_cell *cells[BENCH_CHART_CELLS];
    size_t count;
};

void bench_chart_choose(struct bench_chart *out, const struct bench_report *report, bool first);

/* "0", "16", "auto" */
const char *bench_chart_workers(const struct bench_cell *cell, char out[16]);

/* Samples/s against workers, a line for each pin_memory, and the ceiling. */
void bench_html_rates(FILE *file, const struct bench_chart *chart);

/* A bar for each number of workers: which stage takes which share of the threads' time. */
void bench_html_stages(FILE *file, const struct bench_chart *chart);

#endif
