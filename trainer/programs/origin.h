/* origin.h - the notes in a checkpoint about the run that wrote it, compared with this run.
 *
 *   preset, seed, ema   taken from the checkpoint unless the command line gives them
 *   data, split         compared: training samples must not be used for tests
 */
#ifndef STK_PROGRAMS_ORIGIN_H
#define STK_PROGRAMS_ORIGIN_H

#include "trainer/programs/data.h"

enum { ORIGIN_WORD_MAX = 32 };

/* Texts are empty if another program or version 0.1 wrote the file. */
struct origin {
    const char *path; /* checkpoint; NULL = none */
    char program[ORIGIN_WORD_MAX];
    char preset[ORIGIN_WORD_MAX];
    char seed[ORIGIN_WORD_MAX];
    char ema[ORIGIN_WORD_MAX];       /* decay of its averages */
    char split[2 * ORIGIN_WORD_MAX]; /* "405 + 101": training and test samples */
    char data[DATA_SPEC_MAX];
    char test_data[DATA_SPEC_MAX];
};

/* Reads the notes of --load or --weights. Without either *out is empty. */
int origin_read(struct origin *out, const struct arguments *arguments, stoker_error *error);

/* Returns true if the checkpoint has averages that --eval-only is to test. */
bool origin_has_averages(const struct origin *origin, const struct arguments *arguments);

/* Fills in what the command line does not give. *preset: to read the line with again; unchanged if
 * it fits. STOKER_EMISMATCH: the line asks for another network. */
int origin_choose_preset(const struct origin *origin, const struct arguments *arguments,
                         enum preset *preset, stoker_error *error);
void origin_adopt(const struct origin *origin, struct arguments *arguments);

/* STOKER_EMISMATCH: other data, or another split of the same. The message says what to do. */
int origin_check(const struct origin *origin, const struct arguments *arguments,
                 const struct data *data, stoker_error *error);

/* Sets the notes for the checkpoints of this run. */
int origin_write(stoker_trainer *trainer, const struct arguments *arguments,
                 const struct data *data, stoker_error *error);

#endif
