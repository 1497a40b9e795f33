/* opening.h - how long a data set takes to open, or to be refused, and how much memory it keeps. */
#ifndef BENCH_OPENING_H
#define BENCH_OPENING_H

#include "bench/loaderbench/arguments.h"

#include <stdio.h>

/* Prints one JSON object: kind "open", dataset, date, host, commit, compiler, load_1m, samples,
 * code (name of the first error, "" = none), message, repeats, ms and ms_min (median and minimum of
 * opening and reading the first sample), open_ms (median of opening alone), kept_bytes and
 * peak_bytes (growth of the process in the first repeat: while open, and at most). A refusal is a
 * valid result. */
void bench_opening_measure(const struct bench_arguments *arguments,
                           const struct bench_machine *machine, FILE *file);

#endif
