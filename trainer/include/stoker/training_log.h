/* stoker/training_log.h - the numbers of a training run, in files that other programs read.
 *
 *   scalar(name, step, value) ──▶ TensorBoard events   each number at once
 *                             ──▶ CSV                  a row a step, a column a name
 *
 * Names    "train/loss": what stands before the slash groups, as in TensorBoard.
 * Threads  One thread calls a log.
 * Errors   As in stoker/error.h. A number that could not be written is an error of scalar or of
 *          close; the files hold what came before it.
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
    size_t struct_size;         /* set by STOKER_TRAINING_LOG_OPTIONS_INIT; checked by open */
    const char *events;         /* folder for TensorBoard, made if need be; default NULL = none */
    const char *csv;            /* file; default NULL = none */
    const char *const *columns; /* of the CSV file and in this order; other names are left out of
                                   it. Needed with csv */
    uint32_t column_count;      /* 0..STOKER_TRAINING_LOG_NAMES_MAX */
    uint64_t first_step; /* go on with the files of a run that is taken up again after so many
                                   steps; default 0 = new files */
    stoker_error *error; /* filled in when open fails; NULL (default) = not wanted */
} stoker_training_log_options;

#define STOKER_TRAINING_LOG_OPTIONS_DEFAULTS                                                       \
    STOKER_DEFAULT(struct_size, sizeof(stoker_training_log_options))

#ifdef __cplusplus
static inline stoker_training_log_options stoker_training_log_options_made(void)
{
    stoker_training_log_options made = {};
    STOKER_TRAINING_LOG_OPTIONS_DEFAULTS
    return made;
}
#define STOKER_TRAINING_LOG_OPTIONS_INIT stoker_training_log_options_made()
#else
#define STOKER_TRAINING_LOG_OPTIONS_INIT                                                           \
    {                                                                                              \
        STOKER_TRAINING_LOG_OPTIONS_DEFAULTS                                                       \
    }
#endif

/* Open the files. With none named it is a log that takes everything and writes nothing. On success
 * *out is the caller's, who gives it to stoker_training_log_close(); on failure untouched.
 * STOKER_EINVAL, ENOENT, EACCES, EISDIR, EIO, ENOMEM. */
STOKER_API int stoker_training_log_open(stoker_training_log **out,
                                        const stoker_training_log_options *options);

/* Write one number. Steps never go down. NaN and infinity are written, too: as "nan", "inf" or "-inf" into CSV. */
STOKER_API int stoker_training_log_scalar(stoker_training_log *log, const char *name, uint64_t step,
                                          double value);

/* Write what is left and close; sets *log to NULL, whatever is returned. NULL and a
 * pointer to NULL are allowed. error may be NULL. */
STOKER_API int stoker_training_log_close(stoker_training_log **log, stoker_error *error);

STOKER_END_DECLS
#endif
