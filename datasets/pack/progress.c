/* progress.c - see progress.h. */
#include "datasets/pack/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "loader/base/clock.h"

struct pack_progress pack_progress_begin(const char *what, uint64_t done, uint64_t count,
                                         bool quiet)
{
    return (struct pack_progress){ .line = cli_progress_line(quiet),
                                   .what = what,
                                   .count = count,
                                   .begun_at = done,
                                   .begun_ns = stk_now_ns() };
}

void pack_progress_show(struct pack_progress *progress, uint64_t done)
{
    if (!cli_progress_line_due(&progress->line))
        return;
    const double seconds = stk_seconds(stk_now_ns() - progress->begun_ns);
    const double rate = (double)(done - progress->begun_at) / seconds;
    const double left = rate > 0 ? (double)(progress->count - done) / rate : 0;
    char text[120];
    (void)snprintf(text, sizeof(text),
                   "%s %" PRIu64 " of %" PRIu64 "  %.0f %%  %.0f/s  %.0f s left", progress->what,
                   done, progress->count, 100.0 * (double)done / (double)progress->count, rate,
                   left);
    cli_progress_line_show(&progress->line, text);
}
