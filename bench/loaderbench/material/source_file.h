/* source_file.h - the file in which a data set's samples lie, for reading past the loader. */
#ifndef BENCH_MATERIAL_SOURCE_FILE_H
#define BENCH_MATERIAL_SOURCE_FILE_H

#include <stdint.h>
#include <stoker/stoker.h>

struct bench_source_file {
    int fd; /* a duplicate, owned; -1 = the samples lie in no file */
    uint64_t size;
    char path[512];
};

/* Opens the file that holds sample 0. Without one, fd is -1, which is no error. */
void bench_source_file_open(struct bench_source_file *out, const stoker_dataset *dataset);

void bench_source_file_close(struct bench_source_file *file);

/* *resident_share is the part of the pages that stayed, 0..1, or NaN if unknown. Dirty pages, which
 * would stay, are written first. STOKER_EIO. */
int bench_evict_file(int fd, uint64_t size, double *resident_share);

/* The same for many files; the kernel keeps their names and sizes. *resident_share is sampled from
 * one file in 64. */
int bench_evict_tree(int directory, const char *const *paths, uint64_t count,
                     double *resident_share);

#endif
