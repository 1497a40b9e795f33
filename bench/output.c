/* output.c - which form, and the file that appears complete or not at all. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

const struct bench_form *bench_form_of(enum bench_format format)
{
    static const struct bench_form *const forms[BENCH_FORMAT_COUNT] = {
        &bench_form_table, &bench_form_csv, &bench_form_json, &bench_form_html
    };
    return forms[format];
}

uint32_t bench_output_columns(const struct bench_arguments *arguments)
{
    struct winsize size = { .ws_col = 0 };
    const bool terminal = arguments->output == NULL && isatty(STDOUT_FILENO) == 1 &&
                          ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    return !arguments->wide && terminal && size.ws_col > 0 && size.ws_col < BENCH_COLUMNS_WIDE
               ? BENCH_COLUMNS_NARROW
               : BENCH_COLUMNS_WIDE;
}

/* A file in the folder of `path` that has no name yet, or -1. */
static int open_nameless(const char *path)
{
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof(folder))
        return -1;
    if (length > 0) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

int bench_target_open(struct bench_target *out, const char *path)
{
    *out = (struct bench_target){ .file = stdout, .path = path };
    if (path == NULL)
        return STOKER_OK;
    int length =
        snprintf(out->temporary, sizeof(out->temporary), "%s.%ld.part", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof(out->temporary)) {
        errno = ENAMETOOLONG;
        return STOKER_EINVAL;
    }
    int descriptor = open_nameless(path);
    out->nameless = descriptor >= 0;
    if (descriptor < 0)
        descriptor = open(out->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    out->file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (out->file == NULL && descriptor >= 0)
        close(descriptor);
    return out->file == NULL ? STOKER_EINVAL : STOKER_OK;
}

/* A link cannot take the place of a file that is there: the name comes by way of another. */
static bool give_name(const struct bench_target *target)
{
    char link[32];
    if (!target->nameless)
        return true;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fileno(target->file));
    return linkat(AT_FDCWD, link, AT_FDCWD, target->temporary, AT_SYMLINK_FOLLOW) == 0;
}

int bench_target_close(struct bench_target *target, bool keep)
{
    bool good = fflush(target->file) == 0 && ferror(target->file) == 0;
    if (target->path == NULL)
        return good ? STOKER_OK : STOKER_EIO;

    good = good && keep && fsync(fileno(target->file)) == 0 && give_name(target);
    good = fclose(target->file) == 0 && good;
    if (good)
        good = rename(target->temporary, target->path) == 0;
    if (!good) {
        int cause = errno;
        unlink(target->temporary);
        errno = cause;
    }
    return good || !keep ? STOKER_OK : STOKER_EIO;
}

const char *bench_short_number(char out[16], double value)
{
    static const char units[] = { ' ', 'k', 'M', 'G', 'T' };
    if (!isfinite(value)) {
        snprintf(out, 16, "-");
        return out;
    }
    size_t unit = 0;
    while (fabs(value) >= 999.5 && unit + 1 < sizeof(units)) {
        value /= 1000;
        unit++;
    }
    int digits = fabs(value) >= 99.95 ? 0 : fabs(value) >= 9.995 ? 1 : 2;
    if (unit == 0)
        snprintf(out, 16, "%.*f", digits, value);
    else
        snprintf(out, 16, "%.*f %c", digits, value, units[unit]);
    return out;
}
