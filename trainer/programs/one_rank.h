/* one_rank.h - one rank of a run, from its trainer to its exit status. A run of one process on one
 * device is one rank. */
#ifndef STK_PROGRAMS_ONE_RANK_H
#define STK_PROGRAMS_ONE_RANK_H

#include "trainer/programs/checkpoint_notes.h"
#include "trainer/programs/program.h"
#include "trainer/programs/settings.h"

struct one_rank {
    /* The run's; ranks that are threads share them. */
    const struct program_kind *kind;
    int argc;
    char *const *argv;
    const struct checkpoint_notes *notes;
    const struct data *data;
    const stoker_model *model;
    /* Its own. */
    struct arguments arguments;
    struct console console;
    struct rank_place place;
    char name[80]; /* "stoker-mnist: rank 1", of several */
    struct settings settings;
    stoker_trainer *trainer;
    uint8_t resume[STOKER_STATE_BYTES];
    stoker_error error;
    stoker_error own;    /* the last error that it has found; code 0 = none */
    stoker_error blamed; /* the last that another rank has found */
};

/* Rank 0 speaks and writes for all; the others only complain. */
void rank_take_place(struct one_rank *rank, const struct rank_place *place);

/* Runs to the end. Returns an exit status. */
int rank_run(struct one_rank *rank);

/* Prints the cause. A thread other than rank 0 only keeps it, and so does rank 0 if it is another
 * rank's: rank_threads_run() prints each once. Returns EXIT_FAILED. */
int rank_failed(struct one_rank *rank, int rc);

/* --data-parallel: runs a copy of `like` on each device, as threads of this process. Returns the
 * exit status: that of the rank whose error it was. */
int rank_threads_run(const struct one_rank *like, const struct device_list *devices);

#endif
