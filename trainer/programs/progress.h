/* progress.h - how far the training is: one line that is written over on a terminal, plain lines
 * elsewhere.
 */
#ifndef STK_PROGRAMS_PROGRESS_H
#define STK_PROGRAMS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/cli/progress_line.h"
#include "trainer/programs/voice.h"

struct progress {
    const struct voice *voice;
    struct cli_progress_line line;
    uint64_t said_ns; /* when the last plain line was written */
};

/* What there is to tell. A share or a rate that is not known is NAN. */
struct look {
    uint64_t epoch, epochs; /* from 1 */
    uint64_t step, steps;   /* updates, of the whole run */
    double loss, accuracy;  /* of this epoch so far; accuracy 0..1 */
    double samples_per_s;   /* of the epoch so far */
    double wait_share;      /* of the time since the epoch began, 0..1 */
    double seconds_left;
    bool tested;                     /* at an epoch's end */
    bool averaged;                   /* the test was one of the averaged weights */
    double test_loss, test_accuracy; /* of it; accuracy NAN = there are no classes */
};

void progress_begin(struct progress *progress, const struct voice *voice);

/* In the middle of an epoch: written ten times a second to a terminal, every ten seconds elsewhere. */
void progress_step(struct progress *progress, const struct look *look);

/* An epoch's end: a line that stays. */
void progress_epoch(struct progress *progress, const struct look *look);

/* Whether a look would be shown now: working it out may be left aside if not. */
bool progress_due(const struct progress *progress);

#endif
