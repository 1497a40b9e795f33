/* step.c - one pass, and what follows every few of them.
 *
 *   step   [clear] ──▶ forward, loss, backward ──▶ gradients + gradients     group_passes + 1
 *   step               forward, loss, backward ──▶ gradients + gradients     group_passes = accumulate
 *                         └─▶ finish: norm, finite? ──▶ clip, divide, update; group_passes = 0
 *   flush  the same finish, earlier
 *
 * Where a device decides (backend.h) all this is queued on it, and told when it is read (reading.c).
 *
 * The loss is summed with the loss scale alone; what divides it is known at the end, when all samples
 * of the group are counted. So a short last group has the right mean as well. */
#include <math.h>
#include <string.h>

#include "kernels/float16.h"
#include "loader/base/error.h"
#include "trainer/plan/precision.h"
#include "trainer/view.h"
#include <stoker/cuda.h>

static const struct stk_place nowhere = STK_NOWHERE;

/* Keeps a zero norm from dividing; PyTorch's clip_grad_norm_ has the same. */
static const double clip_epsilon = 1e-6;

/* ---- what a batch must be -------------------------------------------------------- */

/* As stk_shape counts: what is missing is 1. False: more axes than an image has. */
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
    return stk_error_set(&trainer->error, STOKER_EMISMATCH, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s: %s %llux%llux%llu in %u axes, the model asks for %s %s", what,
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
    if (images->dtype != STOKER_FLOAT32 || !shape_of(images, &h, &w, &c) || h != wanted.h ||
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
    const stoker_dtype dtype = classes ? STOKER_INT64 : STOKER_FLOAT32;
    const stoker_tensor *labels = &batch->labels;
    uint64_t h;
    uint64_t w;
    uint64_t c;
    if (labels->dtype != dtype || labels->data == NULL || !shape_of(labels, &h, &w, &c) ||
        h != wanted.h || w != wanted.w || c != wanted.c || labels->shape[0] != batch->count)
        return mismatch(trainer, "labels", labels, stoker_dtype_name(dtype), wanted);
    return STOKER_OK;
}

/* A batch in a GPU's memory is for the trainer on that GPU, whose stream then waits for its copy. */
static int check_place(stoker_trainer *trainer, const stoker_batch *batch)
{
    if (batch->device != STOKER_DEVICE_CUDA)
        return STOKER_OK;
    if (trainer->ops->stream == NULL || batch->device_index != trainer->settings.backend.device)
        return stk_error_set(&trainer->error, STOKER_EMISMATCH, STOKER_STAGE_OPTIONS, &nowhere,
                             "a batch on cuda:%u, the back end is %s", batch->device_index,
                             trainer->ops->stream == NULL ? trainer->ops->name : "another GPU");
    if (batch->loader == NULL)
        return STOKER_OK; /* not a loader's: the caller has seen to it */
    int rc = stoker_batch_wait_on(batch, stoker_trainer_stream(trainer));
    if (rc != STOKER_OK)
        (void)stk_error_set(&trainer->error, rc, STOKER_STAGE_OPTIONS, &nowhere,
                            "waiting for a batch on cuda:%u", batch->device_index);
    return rc;
}

static int check_batch(stoker_trainer *trainer, const stoker_batch *batch)
{
    if (batch->images.data == NULL)
        return stk_error_set(&trainer->error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "a batch without images");
    int rc = check_images(trainer, batch);
    if (rc == STOKER_OK)
        rc = check_labels(trainer, batch);
    return rc == STOKER_OK ? check_place(trainer, batch) : rc;
}

/* ---- training -------------------------------------------------------------------- */

static void describe(const stoker_trainer *trainer, stoker_step *out)
{
    memset(out, 0, sizeof(*out));
    out->learning_rate =
        (float)stk_schedule_rate(&trainer->settings.schedule, trainer->progress.updates);
    out->loss_scale = trainer->progress.loss_scale.scale;
}

/* What gradients are multiplied by: the mean over the samples, without the loss scale, and at most
 * clip_norm long. A norm that is not finite makes the factor so: nothing is hidden. */
static double gradient_factor(stoker_trainer *trainer, stoker_step *out, bool *finite)
{
    const struct stk_progress *progress = &trainer->progress;
    const double limit = trainer->settings.clip_norm;
    double factor = 1 / ((double)progress->loss_scale.scale * (double)progress->group_samples);
    *finite = true;
    if (limit == 0 && !progress->loss_scale.dynamic)
        return factor;
    const double squared = trainer->ops->norm_squared(trainer->backend, trainer->arenas.gradients,
                                                      trainer->model->parameter_floats, finite);
    const double norm = sqrt(squared) * factor;
    out->gradient_norm = (float)norm;
    const double kept = limit / (norm + clip_epsilon);
    if (limit > 0 && !(kept >= 1))
        factor *= kept;
    return factor;
}

static struct stk_update update_of(const stoker_trainer *trainer)
{
    struct stk_update update = {
        .rule = &trainer->settings.rule,
        .parameters = trainer->arenas.parameters,
        .gradients = trainer->arenas.gradients,
        .ema = trainer->ema,
        .ema_decay = trainer->settings.ema_decay,
        .stored = trainer->arenas.stored,
        .storage = trainer->settings.backend.storage,
        .floats = trainer->model->parameter_floats,
        .step = trainer->progress.updates + 1,
    };
    memcpy(update.state, trainer->state, sizeof(update.state));
    return update;
}

/* The host decides whether this update is made, and makes it. */
static void decide(stoker_trainer *trainer, stoker_step *out)
{
    bool finite;
    struct stk_update update = update_of(trainer);
    update.gradient_factor = (float)gradient_factor(trainer, out, &finite);
    update.learning_rate = out->learning_rate;
    out->updated = stk_loss_scale_take(&trainer->progress.loss_scale, finite);
    out->skipped = !out->updated;
    if (out->updated)
        trainer->ops->update(trainer->backend, &update);
}

/* Where the device decides the update is queued already. */
static void end_group(stoker_trainer *trainer, stoker_step *out)
{
    struct stk_progress *progress = &trainer->progress;
    if (trainer->ops->step == NULL)
        decide(trainer, out);
    else
        out->updated = true;
    if (trainer->stored_from != trainer->arenas.parameters)
        trainer->stored_from = NULL; /* those of an evaluation, overwritten or not */
    progress->updates += out->updated ? 1 : 0;
    progress->groups++;
    trainer->unread.groups++;
    progress->group_passes = 0;
    progress->group_samples = 0;
}

static int run_pass(stoker_trainer *trainer, const struct stk_pass *pass)
{
    struct stk_loss *const sum = &trainer->unread.loss;
    struct stk_loss loss;
    if (trainer->progress.group_passes == 0)
        trainer->ops->clear(trainer->backend, trainer->arenas.gradients,
                            trainer->model->parameter_floats);
    int rc = trainer->ops->run(trainer->train, &trainer->arenas, pass, &loss, &trainer->error);
    if (rc != STOKER_OK)
        return rc;
    sum->loss_sum += loss.loss_sum;
    sum->correct += loss.correct;
    sum->count += loss.count;
    return STOKER_OK;
}

/* With the update behind it, if it is the last of its group. */
static int queue_pass(stoker_trainer *trainer, const struct stk_pass *pass)
{
    const struct stk_progress *const progress = &trainer->progress;
    const struct stk_update update = update_of(trainer);
    const struct stk_group_pass group = {
        .first = progress->group_passes == 0,
        .last = progress->group_passes + 1 >= trainer->settings.accumulate,
        .samples = progress->group_samples + pass->count,
        .update = &update,
    };
    return trainer->ops->step(trainer->train, &trainer->arenas, pass, &group, &trainer->error);
}

static int train_pass(stoker_trainer *trainer, const stoker_batch *batch)
{
    struct stk_progress *progress = &trainer->progress;
    const struct stk_pass pass = { .samples = batch->images.data,
                                   .labels = batch->labels.data,
                                   .on_device = batch->device == STOKER_DEVICE_CUDA,
                                   .count = batch->count,
                                   .first_sample = progress->group_samples,
                                   .step = progress->groups,
                                   .seed = progress->seed,
                                   .gradient_scale = progress->loss_scale.scale };
    int rc = stk_trainer_store(trainer, trainer->arenas.parameters);
    if (rc == STOKER_OK)
        rc = trainer->ops->step == NULL ? run_pass(trainer, &pass) : queue_pass(trainer, &pass);
    if (rc != STOKER_OK)
        return rc;
    progress->passes++;
    progress->group_passes++;
    progress->group_samples += batch->count;
    trainer->unread.passes++;
    return STOKER_OK;
}

int stoker_trainer_step(stoker_trainer *trainer, const stoker_batch *batch, stoker_step *out)
{
    if (trainer == NULL || batch == NULL)
        return STOKER_EINVAL;
    stoker_step step;
    describe(trainer, &step);
    if (batch->count > trainer->settings.batch_size)
        return stk_error_set(&trainer->error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "a batch of %u, batch_size is %u", batch->count,
                             trainer->settings.batch_size);
    if (batch->count > 0) {
        int rc = check_batch(trainer, batch);
        if (rc == STOKER_OK)
            rc = train_pass(trainer, batch);
        if (rc != STOKER_OK)
            return rc;
        if (trainer->progress.group_passes >= trainer->settings.accumulate)
            end_group(trainer, &step);
        if (trainer->unread.passes >= trainer->settings.metrics_interval)
            rc = stk_trainer_tell(trainer, &step, &trainer->error);
        if (rc != STOKER_OK)
            return rc;
    }
    if (out != NULL)
        *out = step;
    return STOKER_OK;
}

static int flush_group(stoker_trainer *trainer, stoker_step *out)
{
    const struct stk_update update = update_of(trainer);
    if (trainer->ops->finish != NULL) {
        int rc = trainer->ops->finish(trainer->backend, &update, trainer->progress.group_samples,
                                      &trainer->error);
        if (rc != STOKER_OK)
            return rc;
    }
    end_group(trainer, out);
    return STOKER_OK;
}

int stoker_trainer_flush(stoker_trainer *trainer, stoker_step *out)
{
    if (trainer == NULL)
        return STOKER_EINVAL;
    stoker_step step;
    int rc = STOKER_OK;
    describe(trainer, &step);
    if (trainer->progress.group_passes > 0)
        rc = flush_group(trainer, &step);
    if (rc == STOKER_OK && trainer->unread.passes + trainer->unread.groups > 0)
        rc = stk_trainer_tell(trainer, &step, &trainer->error);
    if (rc != STOKER_OK)
        return rc;
    if (out != NULL)
        *out = step;
    return STOKER_OK;
}

/* ---- forward only ---------------------------------------------------------------- */

/* At most evaluation_batch_size samples. labels may be NULL. */
static int forward(stoker_trainer *trainer, const float *samples, const void *labels,
                   bool on_device, uint32_t count, struct stk_loss *loss)
{
    struct stk_arenas arenas = trainer->arenas;
    arenas.gradients = NULL;
    if (trainer->ema != NULL)
        arenas.parameters = trainer->ema;
    const int rc = stk_trainer_store(trainer, arenas.parameters);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_pass pass = {
        .samples = samples, .labels = labels, .on_device = on_device, .count = count
    };
    return trainer->ops->run(trainer->evaluation, &arenas, &pass, loss, &trainer->error);
}

static uint32_t part_of(const stoker_trainer *trainer, uint32_t left)
{
    const uint32_t most = trainer->settings.evaluation_batch_size;
    return left < most ? left : most;
}

int stoker_trainer_evaluate(stoker_trainer *trainer, const stoker_batch *batch,
                            stoker_evaluation *sum)
{
    if (trainer == NULL || batch == NULL || sum == NULL)
        return STOKER_EINVAL;
    if (batch->count == 0)
        return STOKER_OK;
    int rc = check_batch(trainer, batch);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t sample_floats = stk_shape_elements(trainer->model->layers[0].out);
    const uint64_t label_bytes =
        stoker_dtype_bytes(batch->labels.dtype) *
        (batch->labels.dtype == STOKER_INT64
             ? 1
             : stk_shape_elements(stk_trainer_output_shape(trainer->model)));
    const float *samples = batch->images.data;
    const unsigned char *labels = batch->labels.data;
    stoker_evaluation found = *sum;
    for (uint32_t done = 0; done < batch->count;) {
        const uint32_t count = part_of(trainer, batch->count - done);
        struct stk_loss loss;
        rc = forward(trainer, samples + done * sample_floats, labels + done * label_bytes,
                     batch->device == STOKER_DEVICE_CUDA, count, &loss);
        if (rc != STOKER_OK)
            return rc;
        found.loss_sum += loss.loss_sum;
        found.correct += loss.correct;
        found.count += loss.count;
        done += count;
    }
    *sum = found;
    return STOKER_OK;
}

/* `count` outputs of the plan, as floats. 16-bit ones are read into the upper half of where they go,
 * and widened from there, first to last: each before its place is written over. */
static int read_outputs(stoker_trainer *trainer, float *outputs, uint64_t count)
{
    const struct stk_plan *plan = &trainer->evaluation_plan;
    const size_t element_bytes = stoker_dtype_bytes(plan->storage);
    unsigned char *const end = (unsigned char *)(outputs + count);
    unsigned char *const from = end - count * element_bytes;
    const unsigned char *const arena = trainer->arenas.activations;
    const int rc = stk_arena_read(trainer, from, arena + plan->buffers[plan->output].offset,
                                  count * element_bytes, &trainer->error);
    if (rc != STOKER_OK || !stk_is_narrow(plan->storage))
        return rc;
    for (uint64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
        outputs[i] =
            plan->storage == STOKER_FLOAT16 ? float_of_float16(bits) : float_of_bfloat16(bits);
    }
    return STOKER_OK;
}

int stoker_trainer_predict(stoker_trainer *trainer, const float *samples, uint32_t count,
                           float *outputs)
{
    if (trainer == NULL || ((samples == NULL || outputs == NULL) && count > 0))
        return STOKER_EINVAL;
    const uint64_t sample_floats = stk_shape_elements(trainer->model->layers[0].out);
    const uint64_t output_floats = stk_shape_elements(stk_trainer_output_shape(trainer->model));
    for (uint32_t done = 0; done < count;) {
        const uint32_t part = part_of(trainer, count - done);
        struct stk_loss loss;
        int rc = forward(trainer, samples + done * sample_floats, NULL, false, part, &loss);
        if (rc != STOKER_OK)
            return rc;
        rc = read_outputs(trainer, outputs + done * output_floats, part * output_floats);
        if (rc != STOKER_OK)
            return rc;
        done += part;
    }
    return STOKER_OK;
}
