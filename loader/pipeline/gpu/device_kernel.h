/* device_kernel.h - finds a kernel of libstoker's image for a GPU. */
#ifndef STK_PIPELINE_DEVICE_KERNEL_H
#define STK_PIPELINE_DEVICE_KERNEL_H

#include "loader/device/device.h"

/* Load the kernel `name` into *kernel, which the device keeps until it is closed. STOKER_ENOTSUP: a
 * build without nvcc has no kernels; or what the device's load() returns. On failure `why` says
 * so. */
int stk_device_kernel_load(struct stk_device *device, const char *name, void **kernel,
                           char why[STK_DEVICE_WHY_BYTES]);

#endif
