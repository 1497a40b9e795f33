/* material.h - the data that the ceilings work on, laid out once: rows, encoded samples, their
 * places in files, and the order in which they are visited.
 *
 * A data set too large for memory is represented by samples drawn at random from all of it
 * (`bounded`).
 */
#ifndef BENCH_MATERIAL_H
#define BENCH_MATERIAL_H

#include "bench/loaderbench/material/block.h"
#include "bench/loaderbench/material/source_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stoker/stoker.h>

/* Where the samples come from, which decides the ceiling that fits. */
enum bench_origin {
    BENCH_FROM_MEMORY,  /* raw rows lie in memory */
    BENCH_FROM_FILE,    /* bytes lie in a file */
    BENCH_FROM_NOWHERE, /* the codec makes each row from the sample's number */
    BENCH_FROM_ENCODED  /* encoded bytes lie in memory */
};

enum { BENCH_AHEAD_MAX = 64 }; /* rows that a gather may prefetch */

struct bench_material {
    const stoker_dataset *dataset;
    enum bench_origin origin;
    bool has_codec; /* not stored as raw rows */
    bool bounded;
    bool shuffle;
    uint64_t count; /* samples in the arrays below */
    size_t row_bytes;
    uint64_t *ids; /* [count], in visiting order */

    struct bench_source_file file;
    uint64_t *offsets;  /* [count] in visiting order; NULL unless in one file */
    const char **paths; /* [count], owned by the data set; NULL unless each sample is a file */
    int directory;      /* that paths are relative to; owned by the data set */
    uint32_t *bytes;    /* [count] */
    uint32_t bytes_max;

    struct bench_block rows; /* [count] decoded, as stored; made on first use */
    const void **order;      /* [count + STOKER_BATCH_MAX + BENCH_AHEAD_MAX], the end repeats
                                 the beginning */
    struct bench_block encoded;
    stoker_encoded *samples;     /* [count] */
    const stoker_codec **codecs; /* [count] */
};

struct bench_material_options {
    bool shuffle;
    uint64_t seed;
    uint64_t rows_bytes_max; /* limit on the memory for rows */
};

/* Locates the samples and draws the order. Errors: STOKER_ENOMEM and those of locate. */
int bench_material_create(struct bench_material *out, const stoker_dataset *dataset,
                          const struct bench_material_options *options, stoker_error *error);
void bench_material_destroy(struct bench_material *material);

/* Fills rows and order. Does nothing the second time. */
int bench_material_need_rows(struct bench_material *material, stoker_error *error);

/* Returns true if samples can be read without the loader: from one file, or each from its own. */
bool bench_material_is_readable(const struct bench_material *material);

/* Drops the files from the page cache; *resident_share is the part that stayed, 0..1, NaN if
 * unknown. STOKER_ENOTSUP if the samples lie in no known file. */
int bench_material_evict(const struct bench_material *material, double *resident_share);

/* Fills samples and codecs. STOKER_ENOTSUP if a sample has no codec. */
int bench_material_need_samples(struct bench_material *material, stoker_error *error);

#endif
