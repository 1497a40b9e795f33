/* choose.h - opens the device that the options or the environment ask for. */
#ifndef STK_DEVICE_CHOOSE_H
#define STK_DEVICE_CHOOSE_H

#include "loader/device/device.h"

/* Open device `index` of a kind. AUTO is what the environment variable STOKER_DEVICE names ("cpu", "cuda",
 * "cuda:1"), else the first GPU, else the CPU. `why` receives the reason for the choice. Returns 0, STOKER_ENOMEM,
 * STOKER_EINVAL (STOKER_DEVICE is not understood) or STOKER_EDEVICE. */
int stk_device_choose(struct stk_device **out, stoker_device kind, uint32_t index,
                      char why[STK_DEVICE_WHY_BYTES], stoker_error *error);

#endif
