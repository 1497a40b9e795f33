/* session.h - one run of a program, from its command line to its exit status. */
#ifndef STK_PROGRAMS_SESSION_H
#define STK_PROGRAMS_SESSION_H

#include <stoker/trainer.h>

#include "trainer/programs/data.h"
#include "trainer/programs/voice.h"

/* The differences between mnist and housing. */
struct session_kind {
    const char *name;
    enum program program;
    bool classes; /* true: classification; false: regression */
    int (*open)(struct data *out, const struct arguments *arguments, stoker_error *error);
    /* Prints the result of the test; model is "" or " (averaged weights)". */
    void (*report)(const struct voice *voice, const char *model, const stoker_evaluation *test);
};

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

int session_run(const struct session_kind *kind, int argc, char *const *argv);

#endif
