/* block.h - memory on huge pages, touched once so that later accesses do not fault. */
#ifndef BENCH_MATERIAL_BLOCK_H
#define BENCH_MATERIAL_BLOCK_H

#include <stddef.h>

struct bench_block {
    void *bytes;
    size_t size;   /* as asked for */
    size_t mapped; /* rounded up to whole 2 MiB pages */
};

/* STOKER_ENOMEM. size >= 1. */
int bench_block_create(struct bench_block *out, size_t size);

/* An all-zero block is allowed. */
void bench_block_destroy(struct bench_block *block);

#endif
