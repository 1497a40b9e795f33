/* evaluate.c - forward only: the loss of batches, and outputs.
 *
 *   the host decides     run ─▶ loss ──────────────────────────────┐
 *   the device decides   queue ─▶ queue ─▶ ... sums on the device  ├─▶ evaluated: stoker_evaluation
 *                                          └─ collect: wait, read ─┘
 *
 * A batch larger than the plan is run in parts. */
#include <string.h>

#include "kernels/float16.h"
#include "loader/base/error.h"
#include "trainer/api/peers.h"
#include "trainer/plan/precision.h"
#include "trainer/stage/view.h"

/* Runs at most evaluation_batch_size samples. labels may be NULL. If found is NULL, a device that
 * decides keeps the result until it is collected. */
static int forward(stoker_trainer *trainer, const float *samples, const void *labels,
                   stoker_device device, uint32_t count, struct stk_loss *found)
{
    const struct stk_pass pass = { .samples = samples,
                                   .labels = labels,
                                   .on_device = device == STOKER_DEVICE_CUDA,
                                   .page_locked = device == STOKER_DEVICE_CUDA_HOST,
                                   .count = count };
    const int rc = stk_trainer_drain(trainer, &trainer->error);
    return rc == STOKER_OK
               ? trainer->runner->ops->forward(trainer->runner, &pass, found, &trainer->error)
               : rc;
}

static uint32_t part_of(const stoker_trainer *trainer, uint32_t left)
{
    const uint32_t most = trainer->settings.evaluation_batch_size;
    return left < most ? left : most;
}

static void add_loss(stoker_evaluation *sum, const struct stk_loss *loss)
{
    sum->loss_sum += loss->loss_sum;
    sum->correct += loss->correct;
    sum->count += loss->count;
}

/* Runs all parts of a batch. Results are added to *sum; NULL: they stay on the device. */
static int evaluate_parts(stoker_trainer *trainer, const stoker_batch *batch,
                          stoker_evaluation *sum)
{
    const uint64_t sample_floats = stk_shape_elements(trainer->model->layers[0].out);
    const uint64_t label_bytes =
        stoker_dtype_bytes(batch->labels.dtype) *
        (batch->labels.dtype == STOKER_DTYPE_INT64
             ? 1
             : stk_shape_elements(stk_trainer_output_shape(trainer->model)));
    const float *samples = batch->images.data;
    const unsigned char *labels = batch->labels.data;
    /* The epoch holds the samples that pad the batch elsewhere. */
    const uint32_t all = batch->padded < batch->count ? batch->count - batch->padded : 0;
    for (uint32_t done = 0; done < all;) {
        const uint32_t count = part_of(trainer, all - done);
        struct stk_loss loss;
        const int rc = forward(trainer, samples + done * sample_floats, labels + done * label_bytes,
                               batch->device, count, sum == NULL ? NULL : &loss);
        if (rc != STOKER_OK)
            return rc;
        if (sum != NULL)
            add_loss(sum, &loss);
        done += count;
    }
    return STOKER_OK;
}

int stoker_trainer_evaluate(stoker_trainer *trainer, const stoker_batch *batch,
                            stoker_evaluation *sum)
{
    if (trainer == NULL || batch == NULL)
        return STOKER_EINVAL;
    if (batch->count == 0)
        return STOKER_OK;
    int rc = stk_trainer_check_batch(trainer, batch);
    if (rc != STOKER_OK)
        return rc;
    if (sum == NULL && trainer->runner->queues_forward)
        return evaluate_parts(trainer, batch, NULL);
    stoker_evaluation *const wanted = sum == NULL ? &trainer->evaluated : sum;
    stoker_evaluation found = *wanted;
    rc = evaluate_parts(trainer, batch, &found);
    if (rc == STOKER_OK)
        *wanted = found;
    return rc;
}

/* Adds the results on the device. */
static int collect(stoker_trainer *trainer)
{
    struct stk_loss loss;
    uint64_t bad_labels = 0;
    const struct stk_stage *const stage = trainer->stage[0];
    int rc = stage->ops->device->collect_loss(stage->backend, &loss, &bad_labels, &trainer->error);
    if (rc != STOKER_OK)
        return rc;
    if (bad_labels > 0)
        return stk_refuse_option(&trainer->error, STOKER_EINVAL,
                                 "%llu labels of the evaluated batches are out of range",
                                 (unsigned long long)bad_labels);
    add_loss(&trainer->evaluated, &loss);
    return STOKER_OK;
}

int stoker_trainer_evaluated(stoker_trainer *trainer, stoker_evaluation *sum)
{
    if (trainer == NULL || sum == NULL)
        return STOKER_EINVAL;
    int rc = stk_trainer_reach_read(trainer, &trainer->error);
    if (rc == STOKER_OK && trainer->runner->queues_forward)
        rc = stk_trainer_report_device(trainer, collect(trainer), &trainer->error);
    struct stk_loss all = { .loss_sum = trainer->evaluated.loss_sum,
                            .correct = trainer->evaluated.correct,
                            .count = trainer->evaluated.count };
    uint64_t bad_labels = 0; /* those of this rank were found before */
    rc = stk_trainer_sum_loss(trainer, STK_SYNC_EVALUATE, rc, &all, &bad_labels, &trainer->error);
    if (rc == STOKER_OK)
        add_loss(sum, &all);
    trainer->evaluated = (stoker_evaluation){ 0 };
    return rc;
}

/* Reads `count` outputs of the plan as floats. 16-bit outputs are read into the upper half of the
 * destination and widened from first to last, each before it is overwritten. */
static int read_outputs(stoker_trainer *trainer, float *outputs, uint64_t count)
{
    const struct stk_stage *const last = trainer->stage[trainer->stage_count - 1];
    const struct stk_plan *plan = &last->evaluation_plan;
    const size_t element_bytes = stoker_dtype_bytes(plan->storage);
    unsigned char *const end = (unsigned char *)(outputs + count);
    unsigned char *const from = end - count * element_bytes;
    const unsigned char *const arena = last->arenas.activations;
    const int rc = stk_arena_read(last, from, arena + plan->buffers[plan->output].offset,
                                  count * element_bytes, &trainer->error);
    if (rc != STOKER_OK || !stk_is_narrow(plan->storage))
        return rc;
    for (uint64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
        outputs[i] = plan->storage == STOKER_DTYPE_FLOAT16 ? float_of_float16(bits)
                                                           : float_of_bfloat16(bits);
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
        int rc =
            forward(trainer, samples + done * sample_floats, NULL, STOKER_DEVICE_CPU, part, NULL);
        if (rc != STOKER_OK)
            return rc;
        rc = read_outputs(trainer, outputs + done * output_floats, part * output_floats);
        if (rc != STOKER_OK)
            return rc;
        done += part;
    }
    return STOKER_OK;
}
