/* progress_line.h - one line on the terminal (standard error) that is written over; nothing
 * elsewhere. */
#ifndef STK_CLI_PROGRESS_LINE_H
#define STK_CLI_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress_line {
    bool live;         /* standard error is a terminal, and --quiet was not given */
    int width;         /* columns that the text on the terminal takes */
    uint64_t shown_ns; /* when the last line was written */
};

struct cli_progress_line cli_progress_line(bool quiet);

/* Returns true if the line is live and was last written at least a tenth of a second ago. */
bool cli_progress_line_due(const struct cli_progress_line *line);

/* Writes text over the line, cut at the terminal's edge. */
void cli_progress_line_show(struct cli_progress_line *line, const char *text);

/* Removes the line, before other output and at the end. */
void cli_progress_line_wipe(struct cli_progress_line *line);

#endif
