/* log_csv.h - rows of numbers in a CSV file: "step" and named columns; an empty field = no number.
 *
 *   step,train/loss,test/loss
 *   100,0.25,
 */
#ifndef STK_TRAINER_LOG_CSV_H
#define STK_TRAINER_LOG_CSV_H

#include <stdint.h>
#include <stoker/error.h>

enum { STK_LOG_COLUMNS_MAX = 32, STK_LOG_NAME_BYTES_MAX = 64 };

struct stk_log_csv {
    const char *path; /* the caller's */
    uint32_t column_count;
    int fd;
};

/* first_step 0: a new file. Else continues the file, or creates it: rows after first_step are
 * dropped, and a last row that was cut off. A device or FIFO is always a new file. Names have no
 * comma, quote or end of line. STOKER_EMISMATCH: the file has other columns. A FIFO that nothing
 * reads is an error (errno ENXIO), not a wait. */
int stk_log_csv_open(struct stk_log_csv *log, const char *path, const char *const *columns,
                     uint32_t column_count, uint64_t first_step, stoker_error *error);

/* Writes one row to the file. Bit N of given: values[N] is a number, or "nan" or "inf"; else the
 * field is empty. */
int stk_log_csv_row(struct stk_log_csv *log, uint64_t step, const double *values, uint32_t given,
                    stoker_error *error);

/* Does nothing after a failed open or a close. */
int stk_log_csv_close(struct stk_log_csv *log, stoker_error *error);

#endif
