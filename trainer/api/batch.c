/* batch.c - checks that a batch suits the model, and lies where the back end can read it. */
#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "trainer/api/trainer.h"
#include <stoker/cuda.h>

/* As in stk_shape, missing axes are 1. Returns false if there are more axes than an image has. */
static bool shape_of(const stoker_tensor *tensor, uint64_t *h, uint64_t *w, uint64_t *c)
{
    const uint64_t *shape = tensor->shape;
    *h = *w = *c = 1;
    switch (tensor->rank) {
    case 1:
        return true;
    case 2:
        *c = shape[1];
        return true;
    case 3:
        *h = shape[1];
        *w = shape[2];
        return true;
    case 4:
        *h = shape[1];
        *w = shape[2];
        *c = shape[3];
        return true;
    default:
        return false;
    }
}

static int mismatch(stoker_trainer *trainer, const char *what, const stoker_tensor *found,
                    const char *wanted_type, struct stk_shape wanted)
{
    uint64_t h = 0;
    uint64_t w = 0;
    uint64_t c = 0;
    (void)shape_of(found, &h, &w, &c);
    return stk_refuse_option(&trainer->error, STOKER_EMISMATCH,
                             "%s: %s %llux%llux%llu in %u axes, the model needs %s %s", what,
                             stoker_dtype_name(found->dtype), (unsigned long long)h,
                             (unsigned long long)w, (unsigned long long)c, found->rank, wanted_type,
                             stk_shape_text(wanted).text);
}

static int check_images(stoker_trainer *trainer, const stoker_batch *batch)
{
    const struct stk_shape wanted = trainer->model->layers[0].out;
    const stoker_tensor *images = &batch->images;
    uint64_t h;
    uint64_t w;
    uint64_t c;
    if (images->dtype != STOKER_DTYPE_FLOAT32 || !shape_of(images, &h, &w, &c) || h != wanted.h ||
        w != wanted.w || c != wanted.c || images->shape[0] != batch->count)
        return mismatch(trainer, "images", images, "float32", wanted);
    return STOKER_OK;
}

static int check_labels(stoker_trainer *trainer, const stoker_batch *batch)
{
    const struct stk_layer *loss = &trainer->model->layers[trainer->model->layer_count - 1];
    const bool classes = loss->kind == STK_SOFTMAX_CROSS_ENTROPY;
    const struct stk_shape wanted =
        classes ? (struct stk_shape){ .rank = 1, .h = 1, .w = 1, .c = 1 } : loss->in;
    const stoker_dtype dtype = classes ? STOKER_DTYPE_INT64 : STOKER_DTYPE_FLOAT32;
    const stoker_tensor *labels = &batch->labels;
    uint64_t h;
    uint64_t w;
    uint64_t c;
    if (labels->dtype != dtype || labels->data == NULL || !shape_of(labels, &h, &w, &c) ||
        h != wanted.h || w != wanted.w || c != wanted.c || labels->shape[0] != batch->count)
        return mismatch(trainer, "labels", labels, stoker_dtype_name(dtype), wanted);
    return STOKER_OK;
}

/* A batch in a GPU's memory needs a trainer on that GPU, whose stream then waits for the copy. */
static int check_place(stoker_trainer *trainer, const stoker_batch *batch)
{
    if (batch->device != STOKER_DEVICE_CUDA)
        return STOKER_OK;
    if (!trainer->runner->takes_device_batches)
        return stk_refuse_option(&trainer->error, STOKER_EMISMATCH,
                                 "a batch on cuda:%u: back end %s reads batches from host memory",
                                 batch->device_index, trainer->backend_name);
    if (batch->device_index != trainer->settings.backend.device)
        return stk_refuse_option(&trainer->error, STOKER_EMISMATCH,
                                 "a batch on cuda:%u: the back end is on another GPU",
                                 batch->device_index);
    if (batch->loader == NULL)
        return STOKER_OK; /* not from a loader: the caller synchronizes */
    int rc = stoker_batch_wait_on(batch, stoker_trainer_stream(trainer));
    if (rc != STOKER_OK)
        (void)stk_refuse_option(&trainer->error, rc, "waiting for a batch on cuda:%u",
                                batch->device_index);
    return rc;
}

int stk_trainer_check_batch(stoker_trainer *trainer, const stoker_batch *batch)
{
    if (!stk_struct_size_fits(batch->struct_size, STK_SIZE_UP_TO(stoker_batch, turn)))
        return stk_refuse_option(&trainer->error, STOKER_EINVAL,
                                 "the batch's struct_size is %zu: begin with STOKER_BATCH_INIT",
                                 batch->struct_size);
    if (batch->images.data == NULL)
        return stk_refuse_option(&trainer->error, STOKER_EINVAL, "the batch has no images");
    int rc = check_images(trainer, batch);
    if (rc == STOKER_OK)
        rc = check_labels(trainer, batch);
    return rc == STOKER_OK ? check_place(trainer, batch) : rc;
}
