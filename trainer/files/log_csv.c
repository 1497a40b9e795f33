/* log_csv.c - see log_csv.h. */
#include "trainer/files/log_csv.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/error.h"
#include "loader/base/io/output_file.h"
#include "loader/base/io/write_all.h"

enum {
    LINE_BYTES = (STK_LOG_COLUMNS_MAX + 1) * (STK_LOG_NAME_BYTES_MAX + 1) + 8,
    DIGITS = 9,
    NUMBER_BYTES = 32
};

static int failure(const struct stk_log_csv *log, int code, int os_errno, const char *what,
                   stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = log->path;
    place.os_errno = os_errno;
    return stk_error_set(error, code, STOKER_STAGE_TRANSFER, &place, "%s", what);
}

static int system_failure(const struct stk_log_csv *log, const char *call, stoker_error *error)
{
    const int os_errno = errno;
    return failure(log, stk_error_from_errno(os_errno), os_errno, call, error);
}

static int write_line(struct stk_log_csv *log, const char *line, stoker_error *error)
{
    if (!stk_write_all(log->fd, line, strlen(line)))
        return system_failure(log, "write", error);
    return STOKER_OK;
}

static void make_header(char line[LINE_BYTES], const char *const *columns, uint32_t count)
{
    size_t used = (size_t)snprintf(line, LINE_BYTES, "step");
    for (uint32_t i = 0; i < count; i++) {
        assert(strlen(columns[i]) <= STK_LOG_NAME_BYTES_MAX);
        assert(strpbrk(columns[i], ",\"\r\n") == NULL);
        used += (size_t)snprintf(line + used, LINE_BYTES - used, ",%s", columns[i]);
    }
    (void)snprintf(line + used, LINE_BYTES - used, "\n");
}

/* ---- continuing a file ---------------------------------------------------------- */

/* Returns false unless the line is a row as we write it, with its end of line. */
static bool parse_row(const char *line, uint32_t count, uint64_t *step)
{
    char *end;
    if (line[0] < '0' || line[0] > '9')
        return false;
    errno = 0;
    *step = strtoull(line, &end, 10);
    if (errno != 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (*end != ',')
            return false;
        const char *field = end + 1;
        end = (char *)field;
        if (*field != ',' && *field != '\n')
            (void)strtod(field, &end);
    }
    return strcmp(end, "\n") == 0;
}

/* Returns the offset where the rows to keep end; 0 = no complete header; -1 = another header. */
static long find_end(FILE *file, const char *header, uint32_t count, uint64_t first_step)
{
    char line[LINE_BYTES];
    if (fgets(line, sizeof(line), file) == NULL)
        return 0;
    if (strcmp(line, header) != 0)
        return strncmp(line, header, strlen(line)) == 0 ? 0 : -1; /* a header that was cut off */
    long end = ftell(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        uint64_t step;
        if (!parse_row(line, count, &step) || step > first_step)
            break;
        end = ftell(file);
    }
    return end;
}

static int take_up(struct stk_log_csv *log, const char *header, uint64_t first_step,
                   stoker_error *error)
{
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return failure(log, STOKER_ENOMEM, 0, "the locale", error);
    FILE *file = fopen(log->path, "re");
    if (file == NULL) {
        freelocale(plain);
        return system_failure(log, "open", error);
    }
    const locale_t before = uselocale(plain); /* for this thread: strtod needs a point */
    const long end = find_end(file, header, log->column_count, first_step);
    (void)uselocale(before);
    freelocale(plain);
    fclose(file);
    if (end < 0)
        return failure(log, STOKER_EMISMATCH, 0, "the log has other columns", error);
    if (ftruncate(log->fd, end) != 0 || lseek(log->fd, end, SEEK_SET) != end)
        return system_failure(log, "truncate", error);
    return end == 0 ? write_line(log, header, error) : STOKER_OK;
}

/* ---- the file ------------------------------------------------------------------- */

/* -1 and errno as open() has them. */
static int open_in_place(const char *path)
{
    const int fd = stk_output_open_in_place(path);
    if (fd >= 0)
        return fd;
    errno = -fd;
    return -1;
}

/* As above. */
static int open_regular(const char *path, int flags)
{
    char resolved[PATH_MAX];
    errno = stk_output_resolve(path, resolved);
    return errno == 0 ? stk_output_create(resolved, O_WRONLY | flags, 0666) : -1;
}

int stk_log_csv_open(struct stk_log_csv *log, const char *path, const char *const *columns,
                     uint32_t column_count, uint64_t first_step, stoker_error *error)
{
    assert(column_count <= STK_LOG_COLUMNS_MAX);
    char header[LINE_BYTES];
    make_header(header, columns, column_count);
    log->path = path;
    log->column_count = column_count;
    const bool in_place = stk_output_is_in_place(path);
    if (in_place)
        first_step = 0; /* it cannot be read back */
    log->fd = in_place ? open_in_place(path) : open_regular(path, first_step == 0 ? O_TRUNC : 0);
    if (log->fd < 0)
        return system_failure(log, errno == ENXIO ? stk_output_reason(errno) : "open", error);
    const int rc =
        first_step == 0 ? write_line(log, header, error) : take_up(log, header, first_step, error);
    if (rc != STOKER_OK)
        (void)stk_log_csv_close(log, NULL);
    return rc;
}

/* With a point whatever the locale says, and "nan" without the sign that printf would print. */
static const char *field(char number[NUMBER_BYTES], double value)
{
    (void)snprintf(number, NUMBER_BYTES, "%.*g", DIGITS, value);
    char *const comma = strchr(number, ',');
    if (comma != NULL)
        *comma = '.';
    return isnan(value) ? "nan" : number;
}

int stk_log_csv_row(struct stk_log_csv *log, uint64_t step, const double *values, uint32_t given,
                    stoker_error *error)
{
    assert(log->fd >= 0);
    char line[LINE_BYTES];
    size_t used = (size_t)snprintf(line, sizeof(line), "%" PRIu64, step);
    for (uint32_t i = 0; i < log->column_count; i++) {
        char number[NUMBER_BYTES];
        used += (size_t)snprintf(line + used, sizeof(line) - used, ",%s",
                                 (given >> i & 1) != 0 ? field(number, values[i]) : "");
    }
    (void)snprintf(line + used, sizeof(line) - used, "\n");
    return write_line(log, line, error);
}

int stk_log_csv_close(struct stk_log_csv *log, stoker_error *error)
{
    if (log->fd < 0)
        return STOKER_OK;
    int rc = STOKER_OK;
    if (close(log->fd) != 0 && errno != EINTR)
        rc = system_failure(log, "close", error);
    log->fd = -1;
    return rc;
}
