/* cell.h - measures one combination of options, in turn with the ceilings that fit it. */
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include "bench/loaderbench/arguments.h"
#include "bench/loaderbench/ceiling/ceiling.h"
#include "bench/loaderbench/device/step.h"
#include "bench/loaderbench/ranks.h"
#include "bench/loaderbench/result.h"
#include "bench/loaderbench/trace.h"

#include <stoker/stoker.h>

/* One combination. */
struct bench_choice {
    int32_t workers;
    stoker_switch pin_memory;
    uint32_t batch_size;
    stoker_dtype dtype; /* NONE = as stored */
    stoker_cache cache;
    stoker_device device;
    bool non_blocking;     /* GPU only */
    stoker_switch convert; /* GPU only: on = on the device */
};

/* Shared by all cells. */
struct bench_bench {
    const struct bench_arguments *arguments;
    const stoker_dataset *dataset;
    struct bench_material material;
    struct bench_pool pool;
    struct bench_trace trace;   /* empty without --trace */
    struct bench_gpu_step *gpu; /* NULL = batches stay in host memory */
    uint32_t cpus;              /* that this rank may use */
    struct bench_ranks *ranks;  /* never NULL */
};

enum { BENCH_CHOICE_NAME_MAX = 160 };

/* "workers 2, batch 64, float32, pinned, cache auto"; on a GPU ", non_blocking, converted
 * there". */
void bench_choice_name(const struct bench_choice *choice, char out[BENCH_CHOICE_NAME_MAX]);

/* The options that a program would pass. They point into bench->arguments. */
stoker_loader_options bench_cell_options(const struct bench_bench *bench,
                                         const struct bench_choice *choice);

/* One cell while it runs. */
struct bench_run;

/* Creates the loader, checks an epoch, warms up. On success the caller owns *out and ends it with
 * bench_cell_end. On failure (BENCH_INTERRUPTED is one) *cell has the reason, and *out is
 * untouched. */
int bench_cell_begin(struct bench_run **out, struct bench_bench *bench,
                     const struct bench_choice *choice, struct bench_cell *cell);

/* Bytes that its loader holds; with several ranks the most of any of them. */
uint64_t bench_cell_bytes(const struct bench_run *run);

/* Runs the loader and each fitting ceiling once. Does nothing after a failure. */
void bench_cell_repeat(struct bench_run *run);

/* Samples/s of the last repeat; NaN before the first. */
double bench_cell_rate(const struct bench_run *run);
const struct bench_choice *bench_cell_choice(const struct bench_run *run);

/* Fills in the cell that begin was given, and frees the run. An interrupted cell is done if a
 * repeat is complete. */
void bench_cell_end(struct bench_run *run);

#endif
