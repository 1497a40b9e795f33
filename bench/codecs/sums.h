/* sums.h - the cost of verifying checksums in a loader, and of the cheapest possible check.
 *
 * Three loaders over the same records take turns: one checks nothing, one loads from each line of
 * 64 bytes at the point where the third verifies. No checksum of the bytes can cost less than those
 * loads. Measured is the processor time of all threads: the workers are never idle, and other
 * processes disturb it little.
 */
#ifndef BENCH_SUMS_H
#define BENCH_SUMS_H

#include "bench/material/material.h"

/* Measures and prints one JSON object. STOKER_ENOTSUP unless all records lie in one file. */
int bench_sums_compare(const char *spec, const struct bench_material *material);

#endif
