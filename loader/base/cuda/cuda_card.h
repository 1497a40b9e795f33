/* cuda_card.h - describes a GPU, and tells whether the kernels of this build run on it.
 *
 *   kernels     as machine code run on GPUs of the same compute capability, or of a later one with
 *               the same major number, if the driver is of the toolkit's major version or later
 *   PTX         is compiled by a driver of the toolkit's version or later, for GPUs of that
 *               capability or a later one
 *
 * Source: CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility"; CUDA
 * Compatibility. */
#ifndef STK_BASE_CUDA_CARD_H
#define STK_BASE_CUDA_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/cuda/cuda_runtime.h"

struct stk_cuda_card {
    char name[256];
    uint8_t id[16]; /* its UUID */
    uint64_t memory_bytes;
    int major, minor; /* compute capability */
    int pci_domain, pci_bus, pci_device;
    bool reads_pageable; /* the GPU reads pageable host memory by itself */
    int driver;          /* the latest CUDA that the driver knows: 13000 = 13.0 */
};

/* The number of GPUs, 1 or more. Returns STOKER_OK, or STOKER_EDEVICE with the reason, and what to
 * install if the driver is too old, in `why`. */
int stk_cuda_count(const struct stk_cuda_runtime *runtime, int *count, char *why, size_t why_bytes);

/* Describe GPU `device`. On an error *out is undefined. */
cudaError_t stk_cuda_card_read(const struct stk_cuda_runtime *runtime, int device,
                               struct stk_cuda_card *out);

/* Returns true if kernels run there that nvcc of CUDA `toolkit` (13000 = 13.0) compiled for
 * `targets`, such as "7.5 8.0 PTX 9.0": capabilities, in ascending order, whose machine code there
 * is, and that of the PTX. If not, the reason is in `why`. */
bool stk_cuda_card_runs(const struct stk_cuda_card *card, int toolkit, const char *targets,
                        char *why, size_t why_bytes);

#endif
