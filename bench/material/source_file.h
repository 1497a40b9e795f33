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

#endif
