/* list.h - the GPUs of this machine: their number, and as text. */
#ifndef STK_TRAINER_BACKEND_CUDA_DEVICE_LIST_H
#define STK_TRAINER_BACKEND_CUDA_DEVICE_LIST_H

#include <stddef.h>
#include <stdint.h>

/* Write a line for each GPU and one for the versions, or one with the reason why there is none,
 * truncated to `bytes` >= 1. Returns the length. */
size_t stk_cuda_list_devices(char *text, size_t bytes);

/* 0 if there is none, or none that can be used. */
uint32_t stk_cuda_count_devices(void);

#endif
