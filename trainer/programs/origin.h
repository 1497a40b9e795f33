/* origin.h - what a checkpoint says about the run that wrote it, and whether this run agrees with it.
 *
 *   preset, seed, ema   taken from the checkpoint unless the command line gives them
 *   data, split         compared: no sample that the weights were trained on may be tested on
 */
#ifndef STK_PROGRAMS_ORIGIN_H
#define STK_PROGRAMS_ORIGIN_H

#include "trainer/programs/data.h"

enum { ORIGIN_WORD_MAX = 32 };

/* Empty texts: the file was not written by these programs, or by version 0.1. */
struct origin {
    const char *path; /* checkpoint; NULL = none */
    char program[ORIGIN_WORD_MAX];
    char preset[ORIGIN_WORD_MAX];
    char seed[ORIGIN_WORD_MAX];
    char ema[ORIGIN_WORD_MAX];       /* decay of the averages that it holds */
    char split[2 * ORIGIN_WORD_MAX]; /* "405 + 101": samples to train and to test on */
    char data[DATA_SPEC_MAX];
    char test_data[DATA_SPEC_MAX];
};

/* Read the notes of --load or --weights. Without either *out is empty. */
int origin_read(struct origin *out, const struct arguments *arguments, stoker_error *error);

/* Returns true if the checkpoint has averages that --eval-only is to test. */
bool origin_has_averages(const struct origin *origin, const struct arguments *arguments);

/* Replace what the line does not give. *preset: what the line is to be read with again; unchanged if it fits.
 * STOKER_EMISMATCH: the line asks for another network. */
int origin_choose_preset(const struct origin *origin, const struct arguments *arguments,
                         enum preset *preset, stoker_error *error);
void origin_adopt(const struct origin *origin, struct arguments *arguments);

/* STOKER_EMISMATCH: other data, or another split of the same. The message names the cure. */
int origin_check(const struct origin *origin, const struct arguments *arguments,
                 const struct data *data, stoker_error *error);

/* Let the checkpoints of this run say where they come from. */
int origin_write(stoker_trainer *trainer, const struct arguments *arguments,
                 const struct data *data, stoker_error *error);

#endif
