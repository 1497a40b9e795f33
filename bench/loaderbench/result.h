/* result.h - what was measured, as plain values that every output form prints.
 *
 * A double that was not measured is NaN: the forms print null or leave it out. A text that
 * does not apply is "".
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beside the codes of the library: Ctrl-C ended what was measured. */
enum { BENCH_INTERRUPTED = 100 };

enum { BENCH_REPEATS_MAX = 1000, BENCH_SHARES_MAX = 10 };

enum { BENCH_SCHEMA = 5 }; /* rises when a key of JSON goes or changes its meaning */

/* Where and when the measurements ran. */
struct bench_machine {
    uint32_t schema;
    char date[24]; /* start: ISO 8601, UTC */
    char host[65];
    char commit[64]; /* commit of the source tree; "unknown" outside git */
    char compiler[32];
    double load_1m; /* load averages at the start; NaN = unknown */
    double load_5m;
    double load_15m;
    char tool_version[32];
    char library_version[32];
    char args[1024];
    char cpu[128];
    char gpu[96];  /* that receives the batches; "" = none */
    uint32_t cpus; /* allowed by the affinity mask */
    char kernel[160];
    char disk[320]; /* source and file system of the data set's file; "" = none */
    uint64_t memory_bytes;
    char dataset[512]; /* the spec */
    char dataset_name[32];
    uint64_t samples;
    uint64_t row_bytes;
    char found[320];   /* what opening the data set found out; "" = nothing */
    uint32_t ranks;    /* processes that measure together; 0 and 1 = one */
    char launcher[16]; /* that started several ranks */
};

/* What a cell reached of one ceiling: a median of repeats, as ceiling_share. */
struct bench_share_row {
    char name[32];
    double share;
};

/* Thread time per sample, microseconds, summed over all threads of the loader. */
struct bench_stages {
    double read_us; /* reading, or waiting for reads */
    double decode_us;
    double convert_us;   /* gathering, transforming and converting */
    double slot_wait_us; /* waiting for a free slot of the ring */
};

/* The first epoch of a loader that keeps samples: nothing is in its cache yet. */
struct bench_first_epoch {
    /* True: measured apart. False: every epoch reads, and these are the cell's figures. */
    bool separate;
    /* Median of the repeats, from the end of create to the end of the epoch. */
    double samples_per_s;
    double samples_per_s_min;
    double samples_per_s_max;
    double samples_per_s_low;
    double samples_per_s_high;
    double bytes_per_s;
    struct bench_stages stages;
    char limit[16];
    char verdict[192];
    char ceiling[32]; /* for reading and decoding; "" = not measured */
    double ceiling_samples_per_s;
    double ceiling_share;
    struct bench_share_row shares[BENCH_SHARES_MAX];
    uint32_t share_count;
    uint32_t repeats;
    bool whole; /* the epoch was not cut */
};

/* One combination of options. */
struct bench_cell {
    int32_t workers; /* threads that ran */
    bool automatic;
    char pin_memory[8]; /* as asked for: on, off, auto */
    bool pinned;
    char device[16];      /* cpu, cuda:0, cuda-host:0 */
    char non_blocking[8]; /* on, off; "" without copies */
    char convert[8];      /* host, device; auto if not decided yet; "" without copies */
    uint32_t batch_size;
    char dtype[16];
    char layout[8]; /* nhwc, nchw; "" if rows are not images */
    char reader[16];
    char cache[16];
    uint32_t read_depth;
    uint32_t slots;
    bool cold;

    struct bench_first_epoch first;
    double cached_share; /* part of later epochs' samples served by the cache; NaN = no cache */

    double samples_per_s; /* later epochs, median of the repeats */
    double samples_per_s_min;
    double samples_per_s_max;
    double samples_per_s_low; /* the interval of bench_statistics */
    double samples_per_s_high;
    struct bench_stages stages;
    double rates[BENCH_REPEATS_MAX]; /* samples/s of each repeat, as they came */
    uint32_t rate_count;
    double spread;      /* (max - min) / median */
    double half_spread; /* the same of the middle half of the repeats */
    double bytes_per_s;
    double first_batch_ms; /* from before create to the first batch */
    double create_ms;
    double resume_ms;         /* the same for a loader that resumes within an epoch */
    double cpu_s_per_million; /* processor seconds of the whole process */
    double stall_share;       /* part of the time spent waiting in next */
    double epoch_gap_ms;      /* from the end of an epoch to the next one's first batch */

    uint64_t rss_bytes;       /* peak of the process while the loader warmed up */
    uint64_t rss_base_bytes;  /* the process just before create */
    uint64_t announced_bytes; /* slots, cache and scratch, as the loader reports */
    uint64_t slot_bytes;
    uint64_t locked_bytes;
    uint64_t device_bytes; /* GPU memory taken by the loader */
    uint64_t copy_bytes;   /* one batch on its way to the GPU */
    uint64_t copy_waits;   /* calls of next in which the host waited for copies */

    char limit[16];
    char verdict[192];
    char ceiling[32]; /* the ceiling that fits this cell; "" = not measured */
    double ceiling_samples_per_s;
    double ceiling_share; /* median of the repeats' samples_per_s / ceiling measured right after */
    struct bench_share_row shares[BENCH_SHARES_MAX]; /* against every ceiling that was measured */
    uint32_t share_count;
    double headspace_samples_per_s;
    double headspace_share;
    double cold_resident_share; /* largest part of the file still cached after dropping it */

    uint32_t repeats;
    uint64_t verified; /* samples checked */
    bool whole_epochs;
    /* Processes that measured together; 1 = one. Rates, CPU time and ceilings are those of all. */
    uint32_t ranks;
    uint32_t slowest_rank;
    double slowest_rank_samples_per_s; /* its own; NaN with one process */
    bool skipped;                      /* cannot be done here, and was not asked for by name */
    bool done; /* measured, failed or skipped; false = interrupted, no row */
    char error[512];
};

struct bench_ceiling_row {
    char name[32];
    uint32_t threads;
    uint32_t batch_size; /* 0 = none */
    char dtype[16];
    uint64_t ring_bytes; /* ring that each thread writes; 0 = none */
    uint32_t read_depth; /* 0 = none */
    double samples_per_s;
    double samples_per_s_min;
    double samples_per_s_max;
    double bytes_per_s;
    uint32_t repeats;
    char note[160];
};

struct bench_advice {
    const struct bench_cell *best; /* the recommended one, of the first batch size; NULL = none */
    bool busy;                     /* other programs or the spread make the figures unusable */
    char verdict[2048];
    char options[2048]; /* lines of C */
    char python[1024];
};

/* Beside the cells: what the advice depends on. */
struct bench_circumstances {
    double others_cpus; /* that other programs used meanwhile, of `cpus`; NaN = unknown */
    uint32_t cpus;
    double pin_ms; /* without a GPU: what page-locking adds to create; NaN = not measured */
};

#endif
