/* device.c - records a device's first error; the CPU as a device. */
#include "loader/device/device.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- the first error ---- */

enum { FINE, BEING_WRITTEN, WRITTEN };

int stk_device_fail(struct stk_device *device, const char *format, ...)
{
    uint32_t fine = FINE;
    if (atomic_compare_exchange_strong(&device->failed, &fine, BEING_WRITTEN)) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(device->failure, sizeof(device->failure), format, arguments);
        va_end(arguments);
        atomic_store_explicit(&device->failed, WRITTEN, memory_order_release);
    }
    return STOKER_EDEVICE;
}

const char *stk_device_failure(const struct stk_device *device)
{
    const uint32_t failed = atomic_load_explicit(&device->failed, memory_order_acquire);
    if (failed == FINE)
        return NULL;
    return failed == WRITTEN ? device->failure : "another thread is writing the message";
}

void stk_device_close(struct stk_device *device)
{
    if (device == NULL)
        return;
    if (device->ops->close != NULL)
        device->ops->close(device);
    stk_free(device);
}

/* ---- cpu ---- */

static int cpu_open(struct stk_device **out, uint32_t index, char why[STK_DEVICE_WHY_BYTES])
{
    (void)index;
    (void)why;
    struct stk_device *device = stk_calloc(1, sizeof(*device));
    if (device == NULL)
        return STOKER_ENOMEM;
    device->ops = &stk_device_cpu;
    *out = device;
    return 0;
}

const struct stk_device_ops stk_device_cpu = { .name = "cpu",
                                               .kind = STOKER_DEVICE_CPU,
                                               .open = cpu_open };
