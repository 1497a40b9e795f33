/* console.h - what a run prints: lines on standard output, each marked if the data are made up, and
 * its progress, which is one line on a terminal and plain lines elsewhere. */
#ifndef STK_PROGRAMS_CONSOLE_H
#define STK_PROGRAMS_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/cli/progress_line.h"

struct console {
    const char *program; /* "stoker-mnist": prefix of complaints */
    const char *mark;    /* "" or "[made-up digits] ": prefix of each line */
    bool quiet;          /* console_say and console_text print nothing */
    bool mute;           /* nor does console_result: another rank prints it */
};

void console_say(const struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints each line of text; the last may lack its newline. */
void console_text(const struct console *console, const char *text);

/* The result: printed even if quiet, but not if mute. */
void console_result(const struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One line on standard error: "mnist: what". */
void console_complain(const struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- progress ---- */

struct progress {
    const struct console *console;
    struct cli_progress_line line;
    uint64_t said_ns; /* when the last plain line was written */
};

/* What a line shows. An unknown share or rate is NAN. */
struct look {
    uint64_t epoch, epochs; /* from 1 */
    uint64_t step, steps;   /* updates, of the whole run */
    double loss, accuracy;  /* this epoch so far; accuracy 0..1 */
    double samples_per_s;   /* this epoch so far */
    double wait_share;      /* part of this epoch's time, 0..1 */
    double seconds_left;
    bool tested;                     /* at an epoch's end */
    bool averaged;                   /* the averaged weights were tested */
    double test_loss, test_accuracy; /* accuracy NAN = no classes */
};

void progress_begin(struct progress *progress, const struct console *console);

/* Within an epoch: written ten times a second to a terminal, every ten seconds elsewhere. */
void progress_step(struct progress *progress, const struct look *look);

/* At an epoch's end: a line that stays. */
void progress_epoch(struct progress *progress, const struct look *look);

/* Returns true if progress_step() would write now; if not, the caller need not compute the look. */
bool progress_due(const struct progress *progress);

#endif
