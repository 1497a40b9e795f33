/* packs.cuh - the loop of kernels that take eight adjacent elements a thread. */
#ifndef STK_KERNELS_TRAIN_PACKS_CUH
#define STK_KERNELS_TRAIN_PACKS_CUH

#include "kernels/train/device.cuh"

/* Loops over this thread's packs of eight elements; each begins at `first`. */
#define FOR_EACH_PACK(first, count)                                                                \
    for (uint64_t first = first_element() * STK_TRAIN_PACK; first < (count);                       \
         first += element_stride() * STK_TRAIN_PACK)

#define EACH_OF_PACK(i) for (int i = 0; i < STK_TRAIN_PACK; i++)

#endif
