/* progress.c - see progress.h. */
#include "bench/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "loader/base/clock.h"

void bench_progress_begin(struct bench_progress *progress, uint32_t total, bool quiet)
{
    *progress = (struct bench_progress){ .line = cli_progress_line(quiet),
                                         .begin_ns = stk_now_ns(),
                                         .total = total };
}

static uint64_t seconds_left(const struct bench_progress *progress)
{
    uint64_t spent_ns = stk_now_ns() - progress->begin_ns;
    return spent_ns / progress->done * (progress->total - progress->done) / 1000000000;
}

void bench_progress_show(struct bench_progress *progress, const char *what)
{
    char left[40] = "";
    char line[200];
    if (!progress->line.live)
        return;
    if (progress->done > 0) {
        uint64_t seconds = seconds_left(progress);
        snprintf(left, sizeof(left), "%" PRIu64 ":%02" PRIu64 " left, ", seconds / 60,
                 seconds % 60);
    }
    snprintf(line, sizeof(line), "[%" PRIu32 "/%" PRIu32 "] %s%.120s", progress->done + 1,
             progress->total, left, what);
    cli_progress_line_show(&progress->line, line);
}

void bench_progress_advance(struct bench_progress *progress)
{
    progress->done++;
}
