/* progress.c - see progress.h. */
#include "trainer/programs/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"

static const uint64_t PLAIN_NS = 10000000000U;
enum { LINE_BYTES = 256 };

__attribute__((format(printf, 2, 3))) static void append(char line[LINE_BYTES], const char *format,
                                                         ...)
{
    size_t used = strlen(line);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line + used, LINE_BYTES - used, format, list);
    va_end(list);
}

void progress_begin(struct progress *progress, const struct console *console)
{
    *progress = (struct progress){ .console = console,
                                   .line = cli_progress_line(console->quiet),
                                   .said_ns = stk_now_ns() };
    progress->line.shown_ns = progress->said_ns;
}

bool progress_due(const struct progress *progress)
{
    if (progress->line.live)
        return cli_progress_line_due(&progress->line);
    return !progress->console->quiet && stk_now_ns() - progress->said_ns >= PLAIN_NS;
}

static void describe(char line[LINE_BYTES], const struct look *look)
{
    line[0] = '\0';
    append(line, "epoch %" PRIu64 "/%" PRIu64 " | step %" PRIu64 "/%" PRIu64 " | loss %.4f",
           look->epoch, look->epochs, look->step, look->steps, look->loss);
    if (!isnan(look->accuracy))
        append(line, " | accuracy %.2f %%", 100 * look->accuracy);
    append(line, " | %.0f samples/s | data wait %.2f %%", look->samples_per_s,
           100 * look->wait_share);
}

static void show_live(struct progress *progress, const char *text)
{
    char marked[LINE_BYTES + 64];
    (void)snprintf(marked, sizeof(marked), "%s%s", progress->console->mark, text);
    cli_progress_line_show(&progress->line, marked);
}

/* Short, because the line is cut at the window's edge. */
static void describe_live(char line[LINE_BYTES], const struct look *look)
{
    const uint64_t left = (uint64_t)look->seconds_left;
    line[0] = '\0';
    append(line, "epoch %" PRIu64 "/%" PRIu64 " step %" PRIu64 "/%" PRIu64 " loss %.4f",
           look->epoch, look->epochs, look->step, look->steps, look->loss);
    if (!isnan(look->accuracy))
        append(line, " acc %.2f%%", 100 * look->accuracy);
    append(line, " %.0f/s wait %.2f%% %" PRIu64 ":%02" PRIu64 " left", look->samples_per_s,
           100 * look->wait_share, left / 60, left % 60);
}

void progress_step(struct progress *progress, const struct look *look)
{
    if (!progress_due(progress))
        return;
    char line[LINE_BYTES];
    if (progress->line.live) {
        describe_live(line, look);
        show_live(progress, line);
    } else {
        describe(line, look);
        console_say(progress->console, "%s", line);
        progress->said_ns = stk_now_ns();
    }
}

void progress_epoch(struct progress *progress, const struct look *look)
{
    char line[LINE_BYTES];
    describe(line, look);
    if (look->tested)
        append(line, " |%s test loss %.4f", look->averaged ? " averaged weights:" : "",
               look->test_loss);
    if (look->tested && !isnan(look->test_accuracy))
        append(line, " | test %.2f %%", 100 * look->test_accuracy);
    cli_progress_line_wipe(&progress->line);
    console_say(progress->console, "%s", line);
    progress->said_ns = stk_now_ns();
}
