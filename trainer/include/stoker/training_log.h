/* stoker/training_log.h - log a training run's numbers for TensorBoard and as CSV.
 *
 *   scalar(name, step, value) ──▶ TensorBoard events   written at once
 *                             ──▶ CSV                  one row per step, one column per name
 *
 * Names    1..64 bytes without commas, quotes and line breaks; TensorBoard groups "train/loss" and
 *          "train/rate" under "train".
 * Threads  Call a log from one thread at a time.
 * Errors   As in stoker/error.h. stoker_training_log_close() also returns the first error of
 *          stoker_training_log_scalar().
 */
#ifndef STOKER_TRAINING_LOG_H
#define STOKER_TRAINING_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

typedef struct stoker_training_log stoker_training_log;

enum { STOKER_TRAINING_LOG_NAMES_MAX = 32, STOKER_TRAINING_LOG_NAME_BYTES_MAX = 64 };

typedef struct stoker_training_log_options {
    size_t struct_size; /* set by STOKER_TRAINING_LOG_OPTIONS_INIT */
    const char *events; /* folder for TensorBoard, created if missing; default NULL = none */
    const char *csv;    /* path of the CSV file; default NULL = none */
    /* Names of the CSV columns after "step", copied; other names go to TensorBoard only. */
    const char *const *columns;
    uint32_t column_count; /* 0..STOKER_TRAINING_LOG_NAMES_MAX; default 0 */
    uint64_t first_step;   /* continue the run's files after this step; default 0 = new files */
} stoker_training_log_options;

#define STOKER_TRAINING_LOG_OPTIONS_DEFAULTS                                                       \
    STOKER_DEFAULT(struct_size, sizeof(stoker_training_log_options))

STOKER_MAKER(stoker_training_log_options, STOKER_TRAINING_LOG_OPTIONS_DEFAULTS)
#define STOKER_TRAINING_LOG_OPTIONS_INIT                                                           \
    STOKER_INITIALIZER(stoker_training_log_options, STOKER_TRAINING_LOG_OPTIONS_DEFAULTS)
STOKER_API int stoker_training_log_options_init_sized(stoker_training_log_options *out,
                                                      size_t struct_size);

/* Open the files; without any, numbers are checked and dropped. On success the caller owns *out; on
 * failure it is unchanged, and *error has the cause; error may be NULL. STOKER_EINVAL, EMISMATCH
 * (the file to continue has other columns), ENOENT, EACCES, EISDIR, EIO, ENOMEM. */
STOKER_API int stoker_training_log_open(stoker_training_log **out,
                                        const stoker_training_log_options *options,
                                        stoker_error *error);

/* Write one number. STOKER_EINVAL: log is NULL, the name is invalid, or step is less than before;
 * else an error of the files. CSV rows are written when the step changes; NaN and infinity are
 * "nan", "inf" and "-inf". */
STOKER_API int stoker_training_log_scalar(stoker_training_log *log, const char *name, uint64_t step,
                                          double value);

/* Write the last row, close the files and free the log. Returns the first error of the log. Always
 * sets *log to NULL. NULL and a pointer to NULL are allowed; error may be NULL. */
STOKER_API int stoker_training_log_close(stoker_training_log **log, stoker_error *error);

STOKER_END_DECLS
#endif
