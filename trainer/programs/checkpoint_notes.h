/* checkpoint_notes.h - the notes in a checkpoint about the run that wrote it, compared with this
 * run.
 *
 *   preset, seed, ema   taken from the checkpoint unless the command line gives them
 *   data, split         compared: training samples must not be used for tests
 */
#ifndef STK_PROGRAMS_CHECKPOINT_NOTES_H
#define STK_PROGRAMS_CHECKPOINT_NOTES_H

#include "trainer/programs/data.h"
#include <stoker/error.h>

enum { NOTE_BYTES = 32 };

/* Texts are empty if another program or version 0.1 wrote the file. */
struct checkpoint_notes {
    const char *path; /* checkpoint; NULL = none */
    char program[NOTE_BYTES];
    char preset[NOTE_BYTES];
    char seed[NOTE_BYTES];
    char ema[NOTE_BYTES];       /* decay of its averages */
    char split[2 * NOTE_BYTES]; /* "405 + 101": training and test samples */
    char data[DATA_SPEC_MAX];
    char test_data[DATA_SPEC_MAX];
};

/* Reads the notes of --load or --weights. Without either *out is empty. */
int notes_read(struct checkpoint_notes *out, const struct arguments *arguments,
               stoker_error *error);

/* Returns true if the checkpoint has averages that --eval-only is to test. */
bool notes_has_averages(const struct checkpoint_notes *notes, const struct arguments *arguments);

/* Fills in what the command line does not give. *preset: to read the line with again; unchanged if
 * it fits. STOKER_EMISMATCH: the line asks for another network. */
int notes_choose_preset(const struct checkpoint_notes *notes, const struct arguments *arguments,
                        enum preset *preset, stoker_error *error);
void notes_adopt(const struct checkpoint_notes *notes, struct arguments *arguments);

/* STOKER_EMISMATCH: other data, or another split of the same. The message says what to do. */
int notes_check(const struct checkpoint_notes *notes, const struct arguments *arguments,
                const struct data *data, stoker_error *error);

/* Sets the notes for the checkpoints of this run. */
int notes_write(stoker_trainer *trainer, const struct arguments *arguments, const struct data *data,
                stoker_error *error);

/* STOKER_OK if a checkpoint can be written at `path`, or path is NULL. Else *error has the reason;
 * STOKER_EINVAL: it is neither a regular file nor a new one. Writing may still fail later: a disk
 * can fill up. */
int notes_check_output(const char *path, stoker_error *error);

#endif
