/* device_kernel.c - see device_kernel.h. */
#include "loader/pipeline/gpu/device_kernel.h"

#include <stdio.h>

#include "kernels/transform/gpu/launch.h"

int stk_device_kernel_load(struct stk_device *device, const char *name, void **kernel,
                           char why[STK_DEVICE_WHY_BYTES])
{
    size_t bytes;
    const struct stk_fatbin_targets targets = stk_kernels_targets();
    const struct stk_device_image image = { .bytes = stk_kernels_fatbin(&bytes),
                                            .toolkit = targets.toolkit,
                                            .cards = targets.cards };
    if (image.bytes == NULL) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without nvcc: no kernels");
        return STOKER_ENOTSUP;
    }
    return device->ops->load(device, &image, name, kernel, why);
}
