/* html_write.h - writes the parts of the HTML page. */
#ifndef BENCH_OUTPUT_HTML_WRITE_H
#define BENCH_OUTPUT_HTML_WRITE_H

#include "bench/result.h"

#include <stdio.h>

/* The style element of the page, light and dark. */
void bench_html_style(FILE *file);

/* Text with markup escaped; anything but printable UTF-8 becomes U+FFFD. */
void bench_html_text(FILE *file, const char *text);

/* The cells of a chart, by workers: those that differ from the best one only in workers and pin_memory. */
enum { BENCH_CHART_CELLS = 512 };

struct bench_chart {
    const struct bench_report *report;
    bool first; /* true: first epochs; false: later epochs, or all */
    const struct bench_cell *cells[BENCH_CHART_CELLS];
    size_t count;
};

void bench_chart_choose(struct bench_chart *out, const struct bench_report *report, bool first);

/* "0", "16", "auto" */
const char *bench_chart_workers(const struct bench_cell *cell, char out[16]);

/* Samples/s against workers, one line per pin_memory, and the ceiling. */
void bench_html_rates(FILE *file, const struct bench_chart *chart);

/* One bar per number of workers: each stage's share of the threads' time. */
void bench_html_stages(FILE *file, const struct bench_chart *chart);

#endif
