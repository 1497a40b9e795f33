/* sums.h - what verifying checksums costs a loader, and what the cheapest look at the bytes would.
 *
 * Three loaders over the same records take turns: one checks nothing, one loads from each line of
 * 64 bytes at the point where the third verifies. No checksum of the bytes can cost less than those
 * loads. What is counted is the processor time of all threads: the workers are never idle, and
 * neighbours can add little to it.
 */
#ifndef BENCH_SUMS_H
#define BENCH_SUMS_H

#include "bench/material/material.h"

/* Measure and print one JSON object. STOKER_ENOTSUP unless all records lie in one file. */
int bench_sums_compare(const char *spec, const struct bench_material *material);

#endif
