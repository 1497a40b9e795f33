/* log_files.c - see log_files.h. */
#include "trainer/programs/log_files.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static const char *const columns[] = { "train/epoch",         "train/loss",
                                       "train/learning_rate", "train/samples_per_s",
                                       "train/data_wait",     "test/loss",
                                       "train/accuracy",      "test/accuracy" };
enum { COLUMNS_OF_CLASSES = 2 }; /* the last ones */

int log_files_open(struct log_files *logs, const struct arguments *arguments, bool classes,
                   uint64_t first_step, stoker_error *error)
{
    stoker_training_log_options options = STOKER_TRAINING_LOG_OPTIONS_INIT;
    options.events = arguments->log_dir;
    options.csv = arguments->log;
    options.columns = columns;
    options.column_count =
        sizeof(columns) / sizeof(columns[0]) - (classes ? 0 : COLUMNS_OF_CLASSES);
    options.first_step = first_step;
    *logs = (struct log_files){ .classes = classes };
    int rc = stoker_training_log_open(&logs->log, &options, error);
    if (rc == STOKER_OK)
        rc = trace_open(&logs->trace, arguments->trace, error);
    if (rc != STOKER_OK)
        (void)stoker_training_log_close(&logs->log, NULL);
    return rc;
}

static void write_down(struct log_files *logs, const char *name, uint64_t step, double value)
{
    if (logs->rc == STOKER_OK)
        logs->rc = stoker_training_log_scalar(logs->log, name, step, value);
}

void log_files_train(struct log_files *logs, const struct log_row *row)
{
    write_down(logs, "train/epoch", row->step, row->epoch);
    write_down(logs, "train/loss", row->step, row->loss);
    if (logs->classes)
        write_down(logs, "train/accuracy", row->step, row->accuracy);
    write_down(logs, "train/learning_rate", row->step, row->learning_rate);
    write_down(logs, "train/samples_per_s", row->step, row->samples_per_s);
    write_down(logs, "train/data_wait", row->step, row->wait_share);
}

void log_files_test(struct log_files *logs, uint64_t step, double loss, double accuracy)
{
    write_down(logs, "test/loss", step, loss);
    if (logs->classes)
        write_down(logs, "test/accuracy", step, accuracy);
}

int log_files_close(struct log_files *logs, stoker_error *error)
{
    int rc = stoker_training_log_close(&logs->log, error);
    stoker_error trace_error = { 0 };
    const int trace_rc = trace_close(&logs->trace, "training", &trace_error);
    if (rc == STOKER_OK)
        rc = logs->rc;
    if (rc == STOKER_OK && trace_rc != STOKER_OK) {
        *error = trace_error;
        rc = trace_rc;
    }
    return rc;
}

/* ---- --trace FILE ---------------------------------------------------------------- */

static int trace_failed(stoker_error *error, const char *path, int os_errno)
{
    *error = (stoker_error){ .code = STOKER_EIO, .os_errno = os_errno };
    (void)snprintf(error->message, sizeof(error->message), "%.160s: %.80s", path,
                   stk_output_reason(os_errno));
    return STOKER_EIO;
}

int trace_open(struct trace *trace, const char *path, stoker_error *error)
{
    *trace = (struct trace){ .path = NULL };
    if (path == NULL)
        return STOKER_OK;
    int os_errno = stk_output_open(&trace->output, path);
    if (os_errno == 0 && stk_output_stream(&trace->output) == NULL) {
        os_errno = errno;
        stk_output_drop(&trace->output);
    }
    if (os_errno != 0)
        return trace_failed(error, path, os_errno);
    trace->path = path;
    return STOKER_OK;
}

void trace_step(struct trace *trace, stoker_loader *loader, bool last)
{
    if (trace->path != NULL && (last || ++trace->batches % CLI_TRACE_TAKE_EVERY == 0))
        (void)cli_trace_take(&trace->events, loader, CLI_TRACE_EVENTS_MAX);
}

/* Returns 0 or an errno. */
static int write_file(struct trace *trace, const char *name)
{
    const stoker_trace_run run = { .name = name,
                                   .events = trace->events.events,
                                   .count = trace->events.count,
                                   .dropped = trace->events.dropped };
    errno = ENOMEM; /* the other cause */
    if (stoker_trace_write(&run, 1, cli_trace_to_file, trace->output.stream) == STOKER_OK)
        return stk_output_commit(&trace->output);
    const int os_errno = errno;
    stk_output_drop(&trace->output);
    return os_errno;
}

int trace_close(struct trace *trace, const char *name, stoker_error *error)
{
    int os_errno = 0;
    const char *path = trace->path;
    if (path != NULL)
        os_errno = write_file(trace, name);
    free(trace->events.events);
    *trace = (struct trace){ .path = NULL };
    return os_errno == 0 ? STOKER_OK : trace_failed(error, path, os_errno);
}
