/* decode_choice.h - decides if a GPU decodes images, and sets it up.
 *
 *   facts, options ──choose──▶ pipeline.decode: library, kernels ─▶ cache, plan, slots ──make──▶ ring, a lane per worker
 */
#ifndef STK_DECODE_CHOICE_H
#define STK_DECODE_CHOICE_H

#include "loader/api/loader.h"

/* Once the work is divided and the samples are looked at. framing: of what the host would do.
 * Returns 0; or, if options.decode is DEVICE and that is impossible, STOKER_EDEVICE, ENOTSUP or
 * ENOMEM. With AUTO decode_reason says why not. */
int stk_decode_choice_make(stoker_loader *loader, const struct stk_framing *framing,
                           stoker_error *error);

/* Once slots and workers are made, before they start: the memory on the GPU and the workers' lanes.
 * Errors as above; with AUTO the CPU decodes if there is too little memory. */
int stk_decode_choice_open(stoker_loader *loader, stoker_error *error);

#endif
