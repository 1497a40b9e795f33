/* output.c - see output.h. */
#include "bench/loaderbench/output/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct bench_form *bench_form_of(enum bench_format format)
{
    static const struct bench_form *const forms[BENCH_FORMAT_COUNT] = {
        &bench_form_table, &bench_form_csv, &bench_form_json, &bench_form_html
    };
    return forms[format];
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

bool bench_shows_colors(FILE *file)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(fileno(file)) == 1 && (no_color == NULL || no_color[0] == '\0') &&
           terminal != NULL && strcmp(terminal, "dumb") != 0;
}

int bench_target_open(struct bench_target *out, const char *path)
{
    *out = (struct bench_target){ .file = stdout, .path = path, .output = STK_OUTPUT_CLOSED };
    if (path == NULL)
        return STOKER_OK;
    int os_errno = stk_output_open(&out->output, path);
    out->file = os_errno == 0 ? stk_output_stream(&out->output) : NULL;
    if (out->file != NULL)
        return STOKER_OK;
    os_errno = os_errno != 0 ? os_errno : errno;
    stk_output_drop(&out->output);
    errno = os_errno;
    return STOKER_EINVAL;
}

int bench_target_close(struct bench_target *target, bool keep)
{
    if (target->path == NULL)
        return fflush(target->file) == 0 && ferror(target->file) == 0 ? STOKER_OK : STOKER_EIO;
    if (!keep) {
        stk_output_drop(&target->output);
        return STOKER_OK;
    }
    errno = stk_output_commit(&target->output);
    return errno == 0 ? STOKER_OK : STOKER_EIO;
}
