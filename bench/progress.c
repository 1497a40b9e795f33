/* progress.c - one line on the terminal: which cell, and how long it will still take. */
#include "bench/progress.h"
#include "loader/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_UNKNOWN = 80 };

void bench_progress_begin(struct bench_progress *progress, uint32_t total, bool quiet)
{
    *progress = (struct bench_progress){ .shown = !quiet && isatty(STDERR_FILENO) == 1,
                                         .begin_ns = stk_now_ns(),
                                         .total = total };
}

static uint64_t seconds_left(const struct bench_progress *progress)
{
    uint64_t spent_ns = stk_now_ns() - progress->begin_ns;
    return spent_ns / progress->done * (progress->total - progress->done) / 1000000000;
}

/* A line that reached the edge would wrap, and a carriage return takes nobody back over that. */
static int fitting(int length)
{
    struct winsize size = { .ws_col = 0 };
    const int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
                            ? size.ws_col
                            : WIDTH_UNKNOWN;
    return length < columns ? length : columns - 1;
}

void bench_progress_show(struct bench_progress *progress, const char *what)
{
    char line[200];
    if (!progress->shown)
        return;
    int length = snprintf(line, sizeof(line), "[%" PRIu32 "/%" PRIu32 "] ", progress->done + 1,
                          progress->total);
    if (progress->done > 0) {
        uint64_t left = seconds_left(progress);
        length += snprintf(line + length, sizeof(line) - (size_t)length,
                           "%" PRIu64 ":%02" PRIu64 " left, ", left / 60, left % 60);
    }
    length += snprintf(line + length, sizeof(line) - (size_t)length, "%.120s", what);
    length = fitting(length);
    fprintf(stderr, "\r%-*.*s", fitting(progress->width), length, line);
    fflush(stderr);
    progress->width = length > progress->width ? length : progress->width;
}

void bench_progress_advance(struct bench_progress *progress)
{
    progress->done++;
}

void bench_progress_wipe(struct bench_progress *progress)
{
    if (!progress->shown)
        return;
    fprintf(stderr, "\r%*s\r", fitting(progress->width), "");
    fflush(stderr);
}
