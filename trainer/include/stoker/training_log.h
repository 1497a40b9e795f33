/* stoker/training_log.h - the numbers of a training run, in files that other programs read.
 *
 *   scalar(name, step, value) ──▶ TensorBoard events   written at once
 *                             ──▶ CSV                  one row per step, one column per name
 *
 * Names    "train/loss": the part before the slash is a group, as in TensorBoard.
 * Threads  One thread calls a log.
 * Errors   As in stoker/error.h. If a number cannot be written, scalar or close reports it; the
 *          files hold the numbers before it.
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
    size_t struct_size; /* set by STOKER_TRAINING_LOG_OPTIONS_INIT; checked by open */
    const char *events; /* folder for TensorBoard, created if missing; default NULL = none */
    const char *csv;    /* file; default NULL = none */
    /* Columns of the CSV file, in order; other names are left out. Needed with csv. */
    const char *const *columns;
    uint32_t column_count; /* 0..STOKER_TRAINING_LOG_NAMES_MAX */
    uint64_t first_step;   /* continue the files of a run after this step; default 0 = new files */
} stoker_training_log_options;

#define STOKER_TRAINING_LOG_OPTIONS_DEFAULTS                                                       \
    STOKER_DEFAULT(struct_size, sizeof(stoker_training_log_options))

STOKER_MAKER(stoker_training_log_options, STOKER_TRAINING_LOG_OPTIONS_DEFAULTS)
#define STOKER_TRAINING_LOG_OPTIONS_INIT                                                           \
    STOKER_INITIALIZER(stoker_training_log_options, STOKER_TRAINING_LOG_OPTIONS_DEFAULTS)
STOKER_API int stoker_training_log_options_init_sized(stoker_training_log_options *out,
                                                      size_t struct_size);

/* Open the files. A log without files accepts everything and writes nothing. On success the caller
 * owns *out and calls stoker_training_log_close(); on failure it is unchanged, and *error has the
 * cause; error may be NULL. STOKER_EINVAL, ENOENT, EACCES, EISDIR, EIO, ENOMEM. */
STOKER_API int stoker_training_log_open(stoker_training_log **out,
                                        const stoker_training_log_options *options,
                                        stoker_error *error);

/* Write one number. Steps never decrease. In CSV, NaN and infinity are "nan", "inf" and "-inf". */
STOKER_API int stoker_training_log_scalar(stoker_training_log *log, const char *name, uint64_t step,
                                          double value);

/* Write what is left and close. Always sets *log to NULL. NULL and a pointer to NULL are allowed;
 * error may be NULL. */
STOKER_API int stoker_training_log_close(stoker_training_log **log, stoker_error *error);

STOKER_END_DECLS
#endif
