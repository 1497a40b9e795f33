/* device_kernel.c - see device_kernel.h. */
#include "loader/pipeline/device_kernel.h"

#include <stdio.h>

#include "kernels/transform/launch.h"

int stk_device_kernel_load(struct stk_device *device, const char *name, void **kernel,
                           char why[STK_DEVICE_WHY_BYTES])
{
    size_t bytes;
    const void *const image = stk_kernels_fatbin(&bytes);
    if (image == NULL) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without nvcc: no kernels");
        return STOKER_ENOTSUP;
    }
    return device->ops->load(device, image, name, kernel, why);
}
