/* voice.h - lines on standard output; each is marked if the data are made up. */
#ifndef STK_PROGRAMS_VOICE_H
#define STK_PROGRAMS_VOICE_H

#include <stdbool.h>

struct voice {
    const char *program; /* "stoker-mnist": prefix of complaints */
    const char *mark;    /* "" or "[made-up digits] ": prefix of each line */
    bool quiet;          /* voice_say and voice_text print nothing */
    bool mute;           /* nor does voice_result: another rank prints it */
};

void voice_say(const struct voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints each line of text; the last may lack its newline. */
void voice_text(const struct voice *voice, const char *text);

/* The result: printed even if quiet, but not if mute. */
void voice_result(const struct voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One line on standard error: "mnist: what". */
void voice_complain(const struct voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
