/* describe.c - getters: back end, threads, counters, error. */
#include "trainer/api/trainer.h"

struct stk_shape stk_trainer_output_shape(const stoker_model *model)
{
    return model->layers[model->layer_count - 1].in;
}

bool stk_trainer_device_decides(const stoker_trainer *trainer)
{
    bool decides = true;
    for (uint32_t s = 0; s < trainer->stage_count; s++)
        decides = decides && trainer->stage[s]->ops->device != NULL;
    return decides;
}

const stoker_error *stoker_trainer_error(const stoker_trainer *trainer)
{
    return trainer == NULL || trainer->error.code == STOKER_OK ? NULL : &trainer->error;
}

uint64_t stoker_trainer_updates(const stoker_trainer *trainer)
{
    return trainer == NULL ? 0 : trainer->progress.updates;
}

const char *stoker_trainer_backend(const stoker_trainer *trainer)
{
    return trainer == NULL ? NULL : trainer->backend_name;
}

uint32_t stoker_trainer_threads(const stoker_trainer *trainer)
{
    uint32_t threads = 0;
    for (uint32_t s = 0; trainer != NULL && s < trainer->stage_count; s++)
        threads += trainer->stage[s]->ops->threads(trainer->stage[s]->backend);
    return threads;
}

struct CUstream_st *stoker_trainer_stream(const stoker_trainer *trainer)
{
    if (trainer == NULL)
        return NULL;
    const struct stk_stage *const first = trainer->stage[0];
    return first->ops->device == NULL ? NULL : first->ops->device->stream(first->backend);
}
