/* devices.c - what a trainer can compute on, for a person to choose from. */
#include <stdio.h>
#include <string.h>

#include <stoker/trainer.h>

#include "loader/base/thread.h"
#include "trainer/backend/cuda_devices.h"

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
