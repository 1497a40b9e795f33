/* fit.h - the training loop: next batch, step, and what is due between steps. */
#ifndef STK_PROGRAMS_FIT_H
#define STK_PROGRAMS_FIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/trainer.h>

#include "trainer/programs/console.h"
#include "trainer/programs/log_files.h"

struct fit {
    stoker_trainer *trainer;
    const stoker_dataset *test;
    const stoker_loader_options *loading; /* training set, resume included */
    const stoker_dataset *train;
    uint64_t epochs;
    uint64_t total_updates; /* the run ends after this many, or after the epochs */
    uint64_t eval_every;    /* epochs; 0 = the caller tests */
    uint64_t save_every;    /* updates; 0 = never */
    const char *save;
    bool classes;     /* true: there is an accuracy */
    bool averaged;    /* tests use the averaged weights */
    bool scales_loss; /* updates that overflow are skipped */
    struct progress *progress;
    struct log_files *logs;
};

/* The result. Times exclude tests, saving and printing. */
struct fit_result {
    uint64_t samples;
    uint64_t train_ns;                 /* includes waiting for data */
    uint64_t wait_ns;                  /* part of it spent in stoker_loader_next */
    uint8_t state[STOKER_STATE_BYTES]; /* the loader's position */
    uint64_t updates;                  /* made */
    uint64_t skipped;                  /* updates skipped because gradients overflowed in 16 bits */
    uint64_t saved_at;                 /* updates at the last save; 0 = none */
    bool interrupted;                  /* Ctrl-C: the run stopped after an update */
    stoker_evaluation test;            /* the last test */
    uint64_t tested_at;                /* updates at the last test; 0 = none */
};

/* Runs to the end, or until Ctrl-C. On failure *error has the cause. STOKER_EDIVERGED: the loss is
 * not finite, or every update was skipped; the trainer's state must not be saved. */
int fit_run(const struct fit *fit, struct fit_result *out, stoker_error *error);

/* STOKER_EDIVERGED and its message: `what` is NaN or infinite after `updates` updates. save may be
 * NULL. */
int fit_diverged(const char *what, double value, uint64_t updates, const struct fit_result *result,
                 const char *save, stoker_error *error);

/* One forward pass over the whole set. STOKER_FINISHED: interrupted by Ctrl-C. */
int fit_test(stoker_trainer *trainer, const stoker_dataset *test,
             const stoker_loader_options *loading, stoker_evaluation *out, stoker_error *error);

#endif
