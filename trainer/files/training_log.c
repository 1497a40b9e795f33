/* training_log.c - see stoker/training_log.h. */
#include <stoker/training_log.h>

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "trainer/files/events.h"
#include "trainer/files/log_csv.h"

static_assert((int)STOKER_TRAINING_LOG_NAMES_MAX == (int)STK_LOG_COLUMNS_MAX, "same limit");
static_assert((int)STOKER_TRAINING_LOG_NAME_BYTES_MAX == (int)STK_LOG_NAME_BYTES_MAX, "same limit");
static_assert((int)STOKER_TRAINING_LOG_NAME_BYTES_MAX <= (int)STK_EVENT_TAG_BYTES_MAX, "fits");

enum { PATH_BYTES = 4096 };

struct names {
    uint32_t count;
    char text[STOKER_TRAINING_LOG_NAMES_MAX][STOKER_TRAINING_LOG_NAME_BYTES_MAX + 1];
};

struct stoker_training_log {
    bool has_events, has_csv;
    uint64_t last_step;
    struct stk_events events;
    struct stk_log_csv csv;
    struct names columns;
    double row[STOKER_TRAINING_LOG_NAMES_MAX];
    uint32_t given; /* bit N: row[N] was set for last_step and is not in the CSV file yet */
    char csv_path[PATH_BYTES];
    stoker_error error; /* first error of scalar; code 0 = none */
};

static double wall_time_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool name_fits(const char *name)
{
    const size_t length = name == NULL ? 0 : strlen(name);
    return length >= 1 && length <= STOKER_TRAINING_LOG_NAME_BYTES_MAX &&
           strpbrk(name, ",\"\r\n") == NULL;
}

static int copy_names(struct names *to, const char *const *names, uint32_t count,
                      stoker_error *error)
{
    if (count > STOKER_TRAINING_LOG_NAMES_MAX || (count > 0 && names == NULL))
        return stk_refuse_option(error, STOKER_EINVAL, "columns");
    for (uint32_t i = 0; i < count; i++) {
        if (!name_fits(names[i]))
            return stk_refuse_option(error, STOKER_EINVAL, "the name of a column");
        memcpy(to->text[i], names[i], strlen(names[i]) + 1);
    }
    to->count = count;
    return STOKER_OK;
}

static int copy_path(char to[PATH_BYTES], const char *path, stoker_error *error)
{
    if (path != NULL && strlen(path) >= PATH_BYTES)
        return stk_refuse_option(error, STOKER_EINVAL, "the path is too long");
    if (path != NULL)
        memcpy(to, path, strlen(path) + 1);
    return STOKER_OK;
}

/* Index of the name, or -1. */
static int find(const struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->text[i], name) == 0)
            return (int)i;
    return -1;
}

/* ---- open ----------------------------------------------------------------------- */

static int copy_options(stoker_training_log *log, const stoker_training_log_options *options,
                        stoker_error *error)
{
    int rc = copy_names(&log->columns, options->columns, options->column_count, error);
    if (rc == STOKER_OK)
        rc = copy_path(log->csv_path, options->csv, error);
    return rc;
}

static int open_files(stoker_training_log *log, const stoker_training_log_options *options,
                      stoker_error *error)
{
    int rc = STOKER_OK;
    if (options->csv != NULL) {
        const char *columns[STOKER_TRAINING_LOG_NAMES_MAX];
        for (uint32_t i = 0; i < log->columns.count; i++)
            columns[i] = log->columns.text[i];
        rc = stk_log_csv_open(&log->csv, log->csv_path, columns, log->columns.count,
                              options->first_step, error);
        log->has_csv = rc == STOKER_OK;
    }
    if (rc == STOKER_OK && options->events != NULL) {
        rc = stk_events_open(&log->events, options->events, wall_time_s(), options->first_step,
                             error);
        log->has_events = rc == STOKER_OK;
    }
    return rc;
}

static void discard(stoker_training_log *log)
{
    if (log->has_csv)
        (void)stk_log_csv_close(&log->csv, NULL);
    if (log->has_events)
        (void)stk_events_close(&log->events, NULL);
    stk_free(log);
}

STK_DEFINE_INIT_SIZED(stoker_training_log_options, STOKER_TRAINING_LOG_OPTIONS_INIT, first_step)

int stoker_training_log_open(stoker_training_log **out, const stoker_training_log_options *given,
                             stoker_error *error)
{
    stoker_training_log_options read = STOKER_TRAINING_LOG_OPTIONS_INIT;
    const stoker_training_log_options *options = &read;
    if (out == NULL || given == NULL ||
        !stk_struct_fits(given, STK_SIZE_UP_TO(stoker_training_log_options, first_step),
                         sizeof(*given)))
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "the log: start from STOKER_TRAINING_LOG_OPTIONS_INIT; what lies beyond the "
            "struct of this version must be 0");
    stk_struct_read(&read, sizeof(read), given, given->struct_size);
    stoker_training_log *log = stk_calloc(1, sizeof(*log));
    if (log == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "the log");
    int rc = copy_options(log, options, error);
    if (rc == STOKER_OK)
        rc = open_files(log, options, error);
    if (rc != STOKER_OK) {
        discard(log);
        return rc;
    }
    *out = log;
    return STOKER_OK;
}

/* ---- numbers -------------------------------------------------------------------- */

static int write_row(stoker_training_log *log, stoker_error *error)
{
    if (!log->has_csv || log->given == 0)
        return STOKER_OK;
    const int rc = stk_log_csv_row(&log->csv, log->last_step, log->row, log->given, error);
    log->given = 0;
    return rc;
}

static int put(stoker_training_log *log, const char *name, uint64_t step, double value,
               stoker_error *error)
{
    int rc = step != log->last_step ? write_row(log, error) : STOKER_OK;
    log->last_step = step;
    const int column = find(&log->columns, name);
    if (column >= 0) {
        log->row[column] = value;
        log->given |= UINT32_C(1) << column;
    }
    if (rc == STOKER_OK && log->has_events)
        rc = stk_events_scalar(&log->events, name, step, wall_time_s(), (float)value, error);
    if (rc == STOKER_OK && log->has_events)
        rc = stk_events_flush(&log->events, error);
    return rc;
}

int stoker_training_log_scalar(stoker_training_log *log, const char *name, uint64_t step,
                               double value)
{
    if (log == NULL || !name_fits(name) || step < log->last_step)
        return STOKER_EINVAL;
    stoker_error error = { 0 };
    const int rc = put(log, name, step, value, &error);
    if (rc != STOKER_OK && log->error.code == 0)
        log->error = error;
    return rc;
}

/* ---- close ---------------------------------------------------------------------- */

int stoker_training_log_close(stoker_training_log **log, stoker_error *error)
{
    if (log == NULL || *log == NULL)
        return STOKER_OK;
    stoker_training_log *closing = *log;
    *log = NULL;
    stoker_error *const first = &closing->error;
    stoker_error later = { 0 };
    /* Try each, and report the first failure. */
    (void)write_row(closing, first->code == 0 ? first : &later);
    if (closing->has_csv)
        (void)stk_log_csv_close(&closing->csv, first->code == 0 ? first : &later);
    if (closing->has_events)
        (void)stk_events_close(&closing->events, first->code == 0 ? first : &later);
    const int rc = first->code;
    if (rc != STOKER_OK && error != NULL)
        *error = *first;
    closing->has_csv = closing->has_events = false;
    discard(closing);
    return rc;
}
