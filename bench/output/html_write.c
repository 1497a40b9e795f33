/* html_write.c - text, and the choice of the cells of a chart. */
#include "bench/output/html_write.h"

#include "loader/base/printable.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void bench_html_text(FILE *file, const char *text)
{
    while (*text != '\0') {
        uint32_t code = 0;
        const size_t length = stk_utf8_decode(text, &code);
        if (length == 0 || (!stk_is_printable(code) && code != '\n'))
            fputs("&#xFFFD;", file);
        else if (code == ' ' && text[1] == '%') /* one line keeps both */
            fputs("&nbsp;", file);
        else if (code == '<')
            fputs("&lt;", file);
        else if (code == '>')
            fputs("&gt;", file);
        else if (code == '&')
            fputs("&amp;", file);
        else if (code == '"')
            fputs("&quot;", file);
        else
            fwrite(text, 1, length, file);
        text += length == 0 ? 1 : length;
    }
}

static bool belongs(const struct bench_cell *cell, const struct bench_cell *best)
{
    return cell->error[0] == '\0' && cell->batch_size == best->batch_size &&
           strcmp(cell->dtype, best->dtype) == 0 && strcmp(cell->cache, best->cache) == 0 &&
           strcmp(cell->device, best->device) == 0 &&
           strcmp(cell->non_blocking, best->non_blocking) == 0 &&
           strcmp(cell->convert, best->convert) == 0;
}

/* auto comes last. */
static int64_t place_of(const struct bench_cell *cell)
{
    return cell->automatic ? INT64_MAX : cell->workers;
}

void bench_chart_choose(struct bench_chart *out, const struct bench_report *report, bool first)
{
    *out = (struct bench_chart){ .report = report, .first = first };
    for (size_t index = 0; index < report->cell_count && report->advice->best != NULL; index++) {
        const struct bench_cell *cell = &report->cells[index];
        if (!belongs(cell, report->advice->best) || out->count == BENCH_CHART_CELLS)
            continue;
        size_t at = out->count++;
        for (; at > 0 && place_of(out->cells[at - 1]) > place_of(cell); at--)
            out->cells[at] = out->cells[at - 1];
        out->cells[at] = cell;
    }
}

const char *bench_chart_workers(const struct bench_cell *cell, char out[16])
{
    if (cell->automatic)
        snprintf(out, 16, "auto");
    else
        snprintf(out, 16, "%" PRId32, cell->workers);
    return out;
}
