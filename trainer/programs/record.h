/* record.h - the output files of a run: --log-dir, --log and --trace. */
#ifndef STK_PROGRAMS_RECORD_H
#define STK_PROGRAMS_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/training_log.h>

#include "trainer/programs/arguments.h"
#include "trainer/programs/trace.h"

struct record {
    stoker_training_log *log;
    struct trace trace; /* filled by the loop */
    bool classes;       /* true: there are accuracies */
    int rc;             /* first failure of a write, returned by close */
};

/* first_step: updates made before, by the run that is continued. */
int record_open(struct record *record, const struct arguments *arguments, bool classes,
                uint64_t first_step, stoker_error *error);

/* Means over the passes since the last row; accuracy NAN = no classes. */
struct record_row {
    uint64_t step; /* updates made */
    double epoch;  /* fractional */
    double loss, accuracy, learning_rate, samples_per_s, wait_share;
};
void record_train(struct record *record, const struct record_row *row);

void record_test(struct record *record, uint64_t step, double loss, double accuracy);

/* Closes; returns the first failure since open. */
int record_close(struct record *record, stoker_error *error);

#endif
