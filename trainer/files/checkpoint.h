/* checkpoint.h - two files that change as one: weights for any program, and the state that continuing needs.
 *
 *   PATH  = DIR/model.safetensors            the weights; any program for the format reads it
 *           DIR/model.7.state.safetensors    generation 7 of the rest; PATH names it
 *           DIR/model.ema.safetensors        averages of the weights, if any, for other programs
 *
 *   save    lock DIR
 *           write state    DIR/.model.safetensors.tmp-PID-N ─fsync─▶ rename ▶ model.8.state.safetensors
 *           fsync DIR
 *           write averages, if any, in the same way
 *           write weights  DIR/.model.safetensors.tmp-PID-N ─fsync─▶ rename ▶ PATH   <- the commit
 *           fsync DIR
 *           remove model.7.state.safetensors and temporaries of killed processes
 *           unlock DIR
 *
 *   killed before the commit   PATH is the old file and names generation 7, which is still there
 *   killed after it            PATH is the new file and names generation 8, which is there already
 *
 * So a load finds the old checkpoint or the new one, complete. Both files carry the same random
 * number: halves of different checkpoints are refused. Two processes that save to one PATH take turns.
 * The averages are a copy of those in the state, and no load reads them: after a kill before the
 * commit they may be one save newer than PATH. A save without averages removes those of an older save.
 *
 * This file does not know what the tensors mean.
 */
#ifndef STK_TRAINER_CHECKPOINT_H
#define STK_TRAINER_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

#include "trainer/files/safetensors.h"

/* Save. state and averages may be NULL: then there is no such file. Notes go into their own file;
 * keys that begin with "stoker." are ours, and refused.
 * STOKER_EINVAL (a set as in stk_safetensors_write, a path that ends as a state file does),
 * ENOENT, EACCES, EISDIR, EIO with the errno (also for no space), ENOMEM, ELIMIT. If it fails, PATH still holds the
 * old checkpoint, and no new files are left; only if DIR could not be synchronised after the
 * commit, PATH may be either. A rename that reports an error is judged by what PATH then names; the state file
 * is left where that cannot be seen. */
int stk_checkpoint_save(const char *path, const struct stk_tensor_set *weights,
                        const struct stk_tensor_set *averages, const struct stk_tensor_set *state,
                        stoker_error *error);

struct stk_checkpoint {
    struct stk_safetensors weights;
    struct stk_safetensors state; /* empty sets if there is none */
    bool has_state;
    uint64_t generation; /* 0 = not written by stk_checkpoint_save */
};

enum stk_checkpoint_parts {
    STK_CHECKPOINT_WHOLE,       /* weights, and the state if they name one */
    STK_CHECKPOINT_WEIGHTS_ONLY /* the state file may be gone */
};

/* Read and check a checkpoint, or any safetensors file (then has_state is false). On success *out
 * is to be closed; on failure it is empty. Besides what stk_safetensors_open returns:
 * STOKER_EMISMATCH: the state is that of other weights. STOKER_ENOENT may also mean the state. */
int stk_checkpoint_open(struct stk_checkpoint *out, const char *path,
                        enum stk_checkpoint_parts parts, stoker_error *error);
void stk_checkpoint_close(struct stk_checkpoint *checkpoint); /* empty already is allowed */

#endif
