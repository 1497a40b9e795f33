/* state_changes.h - the state of a loader in any number of bytes: the token, and what a mix's
 * weights changed to while it ran.
 *
 *    0  the token of state.h; without changes that is all
 *   64  magic "STKC"          68  version (1)
 *   72  sources of the mix    76  changes
 *   80  per change: position (8), one float64 per source
 *    .. check: stk_mix64 over the words before
 *
 * Little-endian. Changes that the mix was made with are in its fingerprint, and not here.
 */
#ifndef STK_STATE_CHANGES_H
#define STK_STATE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>

#include "loader/api/state.h"
#include "loader/sampler/mix.h"

/* Bytes of the state of a loader with this mix, which may be all zero. */
size_t stk_state_changes_size(const struct stk_mix *mix);

/* Write what follows the token, which is there already. Only with changes. */
void stk_state_changes_write(const struct stk_mix *mix, uint8_t *bytes);

/* Check the bytes behind the token, and add the changes to the mix. STOKER_ESTATE: damaged, or of
 * another mix; STOKER_ENOMEM. */
int stk_state_changes_read(struct stk_mix *mix, const void *bytes, size_t size,
                           stoker_error *error);

#endif
