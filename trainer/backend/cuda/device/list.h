/* list.h - the GPUs of this machine, as lines for a person. */
#ifndef STK_TRAINER_BACKEND_CUDA_DEVICE_LIST_H
#define STK_TRAINER_BACKEND_CUDA_DEVICE_LIST_H

#include <stddef.h>

/* One line for each GPU and one for the versions, or one that says why there is none; cut off where
 * `bytes` end. Returns the length. bytes >= 1. */
size_t stk_cuda_list_devices(char *text, size_t bytes);

#endif
