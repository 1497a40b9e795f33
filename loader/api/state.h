/* state.h - the resume token: 64 bytes, the same on every machine.
 * base/state_layout.h has its fields.
 *
 * Version 1 (Stoker 0.1) had zero at 48 and is refused: it does not identify its data set.
 */
#ifndef STK_STATE_H
#define STK_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/dataset/identity.h"

enum { STK_STATE_CHANGED = 2 }; /* flag */

struct stk_resume {
    const char *option; /* that the token was given in, for messages; of `expected` */
    uint64_t seed;
    uint64_t epoch;
    uint64_t position;
    uint64_t count;
    uint64_t row_bytes;
    struct stk_fingerprint fingerprint;
    /* Positions in an epoch; 0 = count. Not in the token itself, but part of the order's hash. */
    uint64_t length;
    uint32_t order_hash; /* 24 bits; 0 = no order but shuffle */
    bool shuffle;
    bool changed; /* changes of a mix follow the token */
};

/* The token of this data set and these options at the start of epoch 0; without the order's hash
 * and length. */
struct stk_resume stk_state_start(const stoker_dataset *dataset,
                                  const stoker_loader_options *options);

void stk_state_pack(stoker_state *state, const struct stk_resume *resume);

/* Parse a token. STOKER_ESTATE if it is damaged, has another version, or was made with another
 * data set, seed, shuffle or order than `expected` (whose epoch and position are ignored). */
int stk_state_unpack(struct stk_resume *resume, const stoker_state *state,
                     const struct stk_resume *expected, stoker_error *error);

#endif
