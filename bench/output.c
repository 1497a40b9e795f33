/* output.c - which form, and the file that appears complete or not at all. */
#include "output.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct bench_form *bench_form_of(enum bench_format format)
{
    static const struct bench_form *const forms[BENCH_FORMAT_COUNT] = {
        &bench_form_table, &bench_form_csv, &bench_form_json, &bench_form_html
    };
    return forms[format];
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
    out->file = fopen(out->temporary, "wxe");
    return out->file == NULL ? STOKER_EINVAL : STOKER_OK;
}

int bench_target_close(struct bench_target *target, bool keep)
{
    bool good = fflush(target->file) == 0 && ferror(target->file) == 0;
    if (target->path == NULL)
        return good ? STOKER_OK : STOKER_EIO;

    good = good && keep && fsync(fileno(target->file)) == 0;
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
