/* cut.h - a network cut in two at one value, so that each half can run on a device of its own.
 *
 *   network   input | layer 1 ... layer K | layer K + 1 ... loss
 *   first     input | layer 1 ... layer K | cut
 *   second                           cut | layer K + 1 ... loss
 *
 * Each half is a model whose parameters start at offset 0: the network's arena is the first half's
 * followed by the second's. */
#ifndef STK_TRAINER_CUT_H
#define STK_TRAINER_CUT_H

#include "trainer/model/model.h"

enum { STK_STAGES = 2 };

/* Cuts a closed network after `layers` layers, without the input. On success the caller destroys
 * both halves; on failure both are NULL. STOKER_EINVAL: no such layer; a value of an earlier layer
 * crosses the cut too; a half has no parameters. STOKER_ENOMEM. */
int stk_model_cut(stoker_model *stages[STK_STAGES], const stoker_model *network, uint32_t layers,
                  stoker_error *error);

#endif
