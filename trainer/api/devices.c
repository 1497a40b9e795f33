/* devices.c - lists the devices that a trainer can use, warms one up, and chooses a rank's GPU. */
#include <stdio.h>
#include <string.h>

#include <stoker/ranks.h>
#include <stoker/trainer.h>

#include "loader/base/cpu/thread.h"
#include "trainer/api/join.h"
#include "trainer/api/options.h"
#include "trainer/backend/cuda/device/list.h"
#include "trainer/peers/nccl/functions.h"
#include "trainer/stage/stage.h"

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

void stk_rank_take_device(struct stk_trainer_settings *settings, const struct stk_peers *peers)
{
    stoker_ranks ranks = STOKER_RANKS_INIT;
    const uint32_t count = stk_cuda_count_devices();
    if (settings->device_named)
        return;
    if (peers != NULL && peers->threads)
        ranks.local_rank = peers->rank;
    else
        (void)stoker_ranks_from_environment(&ranks, NULL);
    /* If they cannot be counted, opening it says why. */
    settings->backend.device = count == 0 ? ranks.local_rank : ranks.local_rank % count;
}

bool stk_rank_has_gpu(const struct stk_peers *peers, const stoker_model *model,
                      const stoker_trainer_options *options)
{
    struct stk_nccl_functions nccl;
    struct stk_stage stage = { .model = NULL };
    struct stk_trainer_settings settings;
    if (stk_trainer_settings_read(&settings, options, NULL) != STOKER_OK || !settings.automatic ||
        stk_cuda_count_devices() == 0 || stk_nccl_load(&nccl, NULL) != STOKER_OK)
        return false;
    settings.automatic = false;
    settings.ops = &stk_backend_cuda;
    stk_rank_take_device(&settings, peers);
    const bool opened = stk_stage_open(&stage, model, &settings, 1, NULL) == STOKER_OK;
    stk_stage_close(&stage);
    return opened;
}

uint32_t stoker_trainer_device_index(const stoker_trainer *trainer)
{
    return trainer != NULL && trainer->stage[0]->ops == &stk_backend_cuda
               ? trainer->settings.backend.device
               : 0;
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
