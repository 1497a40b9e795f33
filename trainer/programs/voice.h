/* voice.h - lines on standard output; each says so where the data are made up. */
#ifndef STK_PROGRAMS_VOICE_H
#define STK_PROGRAMS_VOICE_H

#include <stdbool.h>

struct voice {
    const char *program; /* "stoker-mnist": begins each complaint */
    const char *mark;    /* "" or "[made-up digits] ": begins each line */
    bool quiet;          /* voice_say and voice_text say nothing */
};

void voice_say(const struct voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each line of text; its last may lack its end. */
void voice_text(const struct voice *voice, const char *text);

/* Said even if quiet: the result. */
void voice_result(const struct voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One line on standard error: "mnist: what". */
void voice_complain(const struct voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
