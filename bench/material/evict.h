/* evict.h - drops files from the page cache, so that the next read comes from the disk. */
#ifndef BENCH_MATERIAL_EVICT_H
#define BENCH_MATERIAL_EVICT_H

#include <stdint.h>

/* *resident_share is the part of the pages that stayed, 0..1, or NaN if unknown. Dirty pages, which would
 * stay, are written first. STOKER_EIO. */
int bench_evict_file(int fd, uint64_t size, double *resident_share);

/* The same for many files; the kernel keeps their names and sizes. *resident_share is sampled from one
 * file in 64. */
int bench_evict_tree(int directory, const char *const *paths, uint64_t count,
                     double *resident_share);

#endif
