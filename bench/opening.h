/* opening.h - how long a data set takes to open, or to be refused, and what memory it keeps. */
#ifndef BENCH_OPENING_H
#define BENCH_OPENING_H

#include "bench/arguments.h"

#include <stdio.h>

/* Print one JSON object: kind "open", dataset, date, host, commit, compiler, load_1m, samples, code (the name of the error
 * of the first step that failed, "" = none), message, repeats, ms and ms_min (median and least of opening and reading the first sample),
 * open_ms (median without the reading), kept_bytes and peak_bytes (by which the process grew in the
 * first repeat: while it was open, and at most). Being refused is an answer as well: whoever asked
 * decides whether it is the right one. */
void bench_opening_measure(const struct bench_arguments *arguments,
                           const struct bench_machine *machine, FILE *file);

#endif
