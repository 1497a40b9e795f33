/* cut.h - a network cut in two at one value, so that each half can run on a device of its own.
 *
 *   network   input | layer 1 ... layer K | layer K + 1 ... loss
 *   first     input | layer 1 ... layer K | seam
 *   second                           seam | layer K + 1 ... loss
 *
 * A half is a model of its own: its parameters are counted from its own first, so that the network's arena is
 * the first half's and the second's one behind the other. */
#ifndef STK_TRAINER_CUT_H
#define STK_TRAINER_CUT_H

#include "trainer/model/model.h"

enum { STK_STAGES = 2 };

/* Cut a closed network behind `layers` layers, the input not counted. On success the caller gives both to
 * stoker_model_destroy(); on failure both are NULL. STOKER_EINVAL: no such place; another value than that
 * layer's crosses it; a half has no parameters. STOKER_ENOMEM. */
int stk_model_cut(stoker_model *stages[STK_STAGES], const stoker_model *network, uint32_t layers,
                  stoker_error *error);

#endif
