/* console.h - lines on standard output; each is marked if the data are made up. */
#ifndef STK_PROGRAMS_CONSOLE_H
#define STK_PROGRAMS_CONSOLE_H

#include <stdbool.h>

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

#endif
