/* state.h - the state of a loader as bytes, the same on every machine; base/state_layout.h shows
 * the layout. */
#ifndef STK_STATE_H
#define STK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/dataset/identity.h"
#include "loader/sampler/mix.h"

struct stk_resume {
    uint64_t seed;
    uint64_t epoch;
    uint64_t position;
    uint64_t count;
    uint64_t row_bytes;
    struct stk_fingerprint fingerprint;
    /* Positions in an epoch; 0 = count. Not in the state itself, but part of the order's hash. */
    uint64_t length;
    uint32_t order_hash; /* 24 bits; 0 = no order but shuffle */
    bool shuffle;
};

/* The start of epoch 0 of this data set with these options; without the order's hash and length. */
struct stk_resume stk_state_start(const stoker_dataset *dataset,
                                  const stoker_loader_options *options);

/* Bytes of the state of a loader with this mix, which is all zero if the loader has none. */
size_t stk_state_size(const struct stk_mix *mix);

/* Write stk_state_size() bytes. */
void stk_state_write(uint8_t *state, const struct stk_resume *resume, const struct stk_mix *mix);

/* Check that these bytes are a whole state of this version. The message starts with `what`.
 * STOKER_ESTATE if not. */
int stk_state_check(const uint8_t *state, size_t size, const char *what, stoker_error *error);

/* Parse a state that stk_state_check() accepts, and add its changes of weights to the mix.
 * STOKER_ESTATE if it was made with another data set, seed, shuffle or order than `expected`, whose
 * epoch and position are ignored; STOKER_ENOMEM; STOKER_ELIMIT. On failure *resume is unchanged,
 * and the mix may have some of the changes. */
int stk_state_read(struct stk_resume *resume, struct stk_mix *mix, const uint8_t *state,
                   size_t size, const struct stk_resume *expected, stoker_error *error);

#endif
