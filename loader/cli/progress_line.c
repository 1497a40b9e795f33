/* progress_line.c - see progress_line.h. */
#include "loader/cli/progress_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loader/base/clock.h"

enum { WIDTH_UNKNOWN = 80, REDRAW_NS = 100000000 };

struct cli_progress_line cli_progress_line(bool quiet)
{
    return (struct cli_progress_line){ .live = !quiet && isatty(STDERR_FILENO) == 1 };
}

bool cli_progress_line_due(const struct cli_progress_line *line)
{
    return line->live && stk_now_ns() - line->shown_ns >= REDRAW_NS;
}

/* At most one column less than the terminal has: a line that wraps cannot be written over. */
static int fitting(int width)
{
    struct winsize size = { .ws_col = 0 };
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    const int columns = known ? size.ws_col : WIDTH_UNKNOWN;
    return width < columns ? width : columns - 1;
}

void cli_progress_line_show(struct cli_progress_line *line, const char *text)
{
    if (!line->live)
        return;
    const int width = fitting((int)strlen(text));
    (void)fprintf(stderr, "\r%-*.*s", fitting(line->width), width, text);
    (void)fflush(stderr);
    line->width = width; /* what was longer is blank now */
    line->shown_ns = stk_now_ns();
}

void cli_progress_line_wipe(struct cli_progress_line *line)
{
    if (!line->live || line->width == 0)
        return;
    (void)fprintf(stderr, "\r%*s\r", fitting(line->width), "");
    (void)fflush(stderr);
    line->width = 0;
}
