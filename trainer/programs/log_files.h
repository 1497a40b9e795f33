/* log_files.h - the output files of a run: --log-dir, --log and --trace. */
#ifndef STK_PROGRAMS_LOG_FILES_H
#define STK_PROGRAMS_LOG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>
#include <stoker/trace.h>
#include <stoker/training_log.h>

#include "loader/base/io/output_file.h"
#include "loader/cli/trace_events.h"
#include "trainer/programs/arguments.h"

/* ---- --trace FILE: what each thread of the training set's loader did ---- */

/* All zero records nothing. */
struct trace {
    const char *path; /* NULL = off */
    struct stk_output output;
    struct cli_trace events;
    uint32_t batches;
};

/* Opens path for writing (loader/base/io/output_file.h); NULL records nothing. On failure *error
 * has the reason, and *trace is all zero. */
int trace_open(struct trace *trace, const char *path, stoker_error *error);

/* Call after each batch, and before destroying the loader, with `last`; reads the threads' events
 * now and then, and the rest. */
void trace_step(struct trace *trace, stoker_loader *loader, bool last);

/* Writes the trace, with `name` above its threads, and frees it. On failure *error has the reason,
 * and a regular file is unchanged. */
int trace_close(struct trace *trace, const char *name, stoker_error *error);

/* ---- all of them ---- */

struct log_files {
    stoker_training_log *log;
    struct trace trace; /* filled by the loop */
    bool classes;       /* true: there are accuracies */
    int rc;             /* first failure of a write, returned by close */
};

/* first_step: updates made before, by the run that is continued. */
int log_files_open(struct log_files *logs, const struct arguments *arguments, bool classes,
                   uint64_t first_step, stoker_error *error);

/* Means over the passes since the last row; accuracy NAN = no classes. */
struct log_row {
    uint64_t step; /* updates made */
    double epoch;  /* fractional */
    double loss, accuracy, learning_rate, samples_per_s, wait_share;
};
void log_files_train(struct log_files *logs, const struct log_row *row);

void log_files_test(struct log_files *logs, uint64_t step, double loss, double accuracy);

/* Closes; returns the first failure since open. */
int log_files_close(struct log_files *logs, stoker_error *error);

#endif
