/* arguments.h - the command line of loaderbench. */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include "bench/loaderbench/result.h"
#include "loader/cli/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/stoker.h>

enum { BENCH_CHANNELS_MAX = 64 };

/* A constant for each channel. */
struct bench_channels {
    float values[BENCH_CHANNELS_MAX];
    uint32_t count; /* 0 = not given */
};

enum bench_format {
    BENCH_FORMAT_TABLE,
    BENCH_FORMAT_CSV,
    BENCH_FORMAT_JSON,
    BENCH_FORMAT_HTML,
    BENCH_FORMAT_COUNT
};

enum bench_action { BENCH_SWEEP, BENCH_LIKE_PYTORCH, BENCH_OPEN, BENCH_LIST, BENCH_VERSION };

struct bench_arguments {
    enum bench_action action;
    enum cli_form help;
    const char *dataset; /* the spec; NULL if the action needs none */

    struct cli_list workers; /* -1 = auto */
    struct cli_list pins;    /* a stoker_switch each */
    struct cli_list batch_sizes;
    struct cli_list dtypes;    /* a stoker_dtype each; NONE = as stored */
    struct cli_list caches;    /* a stoker_cache each */
    struct cli_list blockings; /* non_blocking: 1 or 0; on a GPU */
    struct cli_list converts;  /* convert_on_device, a stoker_switch each; on a GPU */
    bool pins_given;           /* by the user: failing to pin is then an error */

    stoker_device device; /* never AUTO */
    uint32_t device_index;

    const stoker_reader *reader; /* NULL = the loader chooses */
    uint32_t read_depth;
    uint32_t prefetch_batches;
    bool shuffle;
    uint64_t seed;
    struct bench_channels mean, std;
    stoker_transform transform; /* the same in every cell; all 0 = none */
    stoker_layout layout;
    stoker_decode decode; /* not CPU: without verify, which compares with what the CPU decodes */

    stoker_switch share_cache; /* between ranks of a node */
    uint32_t peer_timeout_s;   /* longest wait for another rank */
    uint32_t repeats;
    bool repeats_given;
    /* Repeats end when the sweep has taken that long, unless their number is given. */
    double budget_s;
    uint32_t epochs; /* minimum per repeat; 0 = one, unless it takes long */
    double seconds;  /* minimum per repeat */
    uint32_t step_us;
    bool verify, headspace, cold, quiet, ceilings;
    bool wide;   /* all columns of the table */
    bool strict; /* a busy machine is a failure */

    enum bench_format format;
    const char *output; /* NULL = standard output */
    const char *html;   /* the page, beside the output; NULL = none */
    const char *trace;  /* where the trace goes; NULL = none */
    const char *beside; /* file with the same experiment of another loader; NULL = none */
};

/* Reads the command line. On STOKER_EINVAL message has one line. Prints nothing. Strings in *out
 * point into argv. cpus: number of CPUs for the default list of workers. */
int bench_arguments_parse(struct bench_arguments *out, int argc, char *const *argv, uint32_t cpus,
                          char message[CLI_MESSAGE_BYTES]);

/* The values of a command line without options. */
void bench_arguments_defaults(struct bench_arguments *arguments, uint32_t cpus);

/* 0, 1, 2, 4, ... up to the CPUs, then auto. */
void bench_default_workers(struct cli_list *out, uint32_t cpus);

void bench_arguments_help(FILE *file, enum cli_form form);
void bench_arguments_list(FILE *file);

/* Sets the usual channel constants of this data set if none were given. */
void bench_arguments_default_mean(struct bench_arguments *arguments, const char *dataset_name);

/* Fills a struct bench_arguments. */
struct cli_table bench_option_table(void);

#endif
