/* console.c - see console.h. */
#include "trainer/programs/console.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/text/printable.h"

static void say(const struct console *console, FILE *file, const char *begin, const char *format,
                va_list list)
{
    char line[2048];
    (void)vsnprintf(line, sizeof(line), format, list);
    stk_printable(line); /* names of files and data sets are not trusted */
    fprintf(file, "%s%s%s\n", begin, console->mark, line);
    fflush(file);
}

void console_say(const struct console *console, const char *format, ...)
{
    if (console->quiet)
        return;
    va_list list;
    va_start(list, format);
    say(console, stdout, "", format, list);
    va_end(list);
}

void console_text(const struct console *console, const char *text)
{
    while (!console->quiet && *text != '\0') {
        size_t length = strcspn(text, "\n");
        printf("%s%.*s\n", console->mark, (int)length, text);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    fflush(stdout);
}

void console_result(const struct console *console, const char *format, ...)
{
    if (console->mute)
        return;
    va_list list;
    va_start(list, format);
    say(console, stdout, "", format, list);
    va_end(list);
}

void console_complain(const struct console *console, const char *format, ...)
{
    char begin[80];
    (void)snprintf(begin, sizeof(begin), "%.60s: ", console->program);
    const struct console plain = { .mark = "" };
    va_list list;
    va_start(list, format);
    say(&plain, stderr, begin, format, list);
    va_end(list);
}

/* ---- progress --------------------------------------------------------------------- */

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
