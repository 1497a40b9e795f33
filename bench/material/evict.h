/* evict.h - take files out of the page cache, so that the next read of them comes from the disk. */
#ifndef BENCH_MATERIAL_EVICT_H
#define BENCH_MATERIAL_EVICT_H

#include <stdint.h>

/* *resident_share is which part of its pages stayed, 0..1, or NaN if that cannot be told. Pages are
 * written first, since dirty ones stay. STOKER_EIO. */
int bench_evict_file(int fd, uint64_t size, double *resident_share);

/* The same for many files; names and sizes stay known to the system. Only one file in 64 is asked
 * what stayed of it. */
int bench_evict_tree(int directory, const char *const *paths, uint64_t count,
                     double *resident_share);

#endif
