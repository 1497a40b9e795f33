/* progress.c - see progress.h. */
#include "datasets/pack/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { REDRAW_NS = 100000000, WIDTH_MAX = 79 };

/* Characters that a line may have: one that reached the edge would wrap, and stay. */
static int width(void)
{
    struct winsize size = { .ws_col = 0 };
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known && size.ws_col <= WIDTH_MAX ? size.ws_col - 1 : WIDTH_MAX;
}

uint64_t pack_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

struct pack_progress pack_progress_begin(const char *what, uint64_t done, uint64_t count,
                                         bool quiet)
{
    return (struct pack_progress){ .shown = !quiet && isatty(STDERR_FILENO) == 1,
                                   .what = what,
                                   .count = count,
                                   .begun_at = done,
                                   .begun_ns = pack_now_ns() };
}

void pack_progress_show(struct pack_progress *progress, uint64_t done)
{
    const uint64_t now_ns = pack_now_ns();
    if (!progress->shown || now_ns - progress->drawn_ns < REDRAW_NS)
        return;
    progress->drawn_ns = now_ns;
    const double seconds = (double)(now_ns - progress->begun_ns) * 1e-9;
    const double rate = (double)(done - progress->begun_at) / seconds;
    const double left = rate > 0 ? (double)(progress->count - done) / rate : 0;
    char line[WIDTH_MAX + 1];
    (void)snprintf(line, sizeof(line),
                   "%s %" PRIu64 " of %" PRIu64 "  %.0f %%  %.0f/s  %.0f s left", progress->what,
                   done, progress->count, 100.0 * (double)done / (double)progress->count, rate,
                   left);
    (void)fprintf(stderr, "\r%-*.*s", width(), width(), line);
    (void)fflush(stderr);
}

void pack_progress_end(struct pack_progress *progress)
{
    if (progress->shown && progress->drawn_ns != 0)
        (void)fprintf(stderr, "\r%*s\r", width(), "");
}
