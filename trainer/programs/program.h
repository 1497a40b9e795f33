/* program.h - one run of a program, from its command line to its exit status. */
#ifndef STK_PROGRAMS_PROGRAM_H
#define STK_PROGRAMS_PROGRAM_H

#include <stoker/trainer.h>

#include "trainer/programs/console.h"
#include "trainer/programs/data.h"

/* The differences between mnist and housing. */
struct program_kind {
    const char *name;
    enum program program;
    bool classes; /* true: classification; false: regression */
    int (*open)(struct data *out, const struct arguments *arguments, stoker_error *error);
    /* Prints the result of the test; model is "" or " (averaged weights)". */
    void (*report)(const struct console *console, const char *model, const stoker_evaluation *test);
};

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

int program_run(const struct program_kind *kind, int argc, char *const *argv);

#endif
