/* material.h - what the ceilings work on, laid out once: rows, encoded samples, places in
 * the file or the files, and the order in which they are visited.
 *
 * A data set too large for memory is represented by samples drawn from all over it;
 * `bounded` says so.
 */
#ifndef BENCH_MATERIAL_H
#define BENCH_MATERIAL_H

#include "bench/material/block.h"
#include "bench/material/source_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stoker/stoker.h>

/* Where the samples of this data set come from, and so which ceiling fits. */
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
    bool has_codec; /* stored otherwise than as raw rows */
    bool bounded;
    bool shuffle;
    uint64_t count; /* samples below */
    size_t row_bytes;
    uint64_t *ids; /* [count], in visiting order */

    struct bench_source_file file;
    uint64_t *offsets;  /* [count] in visiting order; NULL unless in one file */
    const char **paths; /* [count], the data set's; NULL unless each sample is a file of its own */
    int directory;      /* where paths start; the data set's */
    uint32_t *bytes;    /* [count] */
    uint32_t bytes_max;

    struct bench_block rows; /* [count] as stored, decoded; made when first asked for */
    const void **order;      /* [count + STOKER_BATCH_MAX + BENCH_AHEAD_MAX], the end repeats
                                 the beginning */
    struct bench_block encoded;
    stoker_encoded *samples;   /* [count] */
    const stoker_codec *codec; /* of all of them; NULL = they have several */
};

struct bench_material_options {
    bool shuffle;
    uint64_t seed;
    uint64_t rows_bytes_max; /* most memory for rows */
};

/* Find out where samples are and draw the order. Errors: STOKER_ENOMEM and locate's. */
int bench_material_create(struct bench_material *out, const stoker_dataset *dataset,
                          const struct bench_material_options *options, stoker_error *error);
void bench_material_destroy(struct bench_material *material);

/* Fill rows and order. Does nothing the second time. */
int bench_material_need_rows(struct bench_material *material, stoker_error *error);

/* Whether its samples can be read past the loader: from one file, or each from its own. */
bool bench_material_is_readable(const struct bench_material *material);

/* Take the file, or the files, out of the page cache; *resident_share is what stayed, 0..1, or NaN
 * if that cannot be told. STOKER_ENOTSUP if the samples lie in no file that can be named. */
int bench_material_evict(const struct bench_material *material, double *resident_share);

/* Fill samples and codec. STOKER_ENOTSUP if some have none. */
int bench_material_need_samples(struct bench_material *material, stoker_error *error);

#endif
