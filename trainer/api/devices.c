/* devices.c - lists the devices that a trainer can use, and warms one up. */
#include <stdio.h>
#include <string.h>

#include <stoker/trainer.h>

#include "loader/base/thread.h"
#include "trainer/api/options.h"
#include "trainer/api/rank_device.h"
#include "trainer/backend/cuda/device/list.h"

enum { TEXT_BYTES = 8192 };

size_t stoker_trainer_devices(char *text, size_t bytes)
{
    char list[TEXT_BYTES];
    size_t length =
        (size_t)snprintf(list, sizeof(list), "%-8s %u threads\n", "cpu", stk_cpu_count());
    length += stk_cuda_list_devices(list + length, sizeof(list) - length);
    if (bytes > 0) {
        const size_t copied = length < bytes ? length : bytes - 1;
        memcpy(text, list, copied);
        text[copied] = '\0';
    }
    return length;
}

/* Opening and closing a back end leaves the driver's context and the libraries loaded. */
void stoker_trainer_wake(const char *backend, bool convolutions)
{
    struct stk_trainer_settings settings = { .automatic = false };
    struct stk_backend *woken = NULL;
    if (stk_trainer_read_backend(&settings, backend, NULL) != STOKER_OK ||
        !(settings.automatic || settings.ops == &stk_backend_cuda))
        return;
    stk_rank_take_device(&settings, NULL);
    settings.backend.needs_convolutions = convolutions;
    settings.backend.needs_linear = true;
    if (stk_backend_cuda.create(&woken, &settings.backend, NULL) == STOKER_OK)
        stk_backend_cuda.destroy(woken);
}
