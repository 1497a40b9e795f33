/* operations.c - steps of the cpu back end on oneDNN. */
#include "trainer/backend/cpu/operations.h"

#include <stoker/error.h>
#include <string.h>

#include "kernels/float16.h"
#include "loader/base/cpu/cpu_features.h"
#include "loader/base/environment.h"
#include "trainer/backend/common/vectors.h"
#include "trainer/backend/cpu/onednn/onednn.h"

/* NaN stays NaN. oneDNN's own ReLU would make it 0, and an overflow would go unnoticed. */
STK_VECTOR_BODY rectify_floats_body(float *y, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        y[i] = y[i] < 0 ? 0 : y[i];
}
STK_VECTORS(rectify_floats, (float *y, uint64_t count), (y, count))

STK_VECTOR_BODY rectify_bfloat16_body(uint16_t *y, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        y[i] = y[i] > 0x8000 && y[i] <= 0xFF80 ? 0 : y[i]; /* below zero, -infinity included */
}
STK_VECTORS(rectify_bfloat16, (uint16_t * y, uint64_t count), (y, count))

/* Add the gradients of this thread's share of the biases of a linear layer. */
static void add_bias_gradients(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint16_t *narrow = (const uint16_t *)(const void *)o->dy;
    const uint64_t out = stk_shape_elements(o->layer->out);
    const struct stk_share share = stk_share_of(out, task->thread, task->threads);
    for (uint64_t to = share.begin; to < share.end; to++) {
        float sum = 0;
        for (uint32_t n = 0; n < o->count; n++)
            sum += o->storage == STOKER_DTYPE_BFLOAT16 ? float_of_bfloat16(narrow[n * out + to])
                                                       : o->dy[n * out + to];
        o->bias_grad[to] += sum;
    }
}

static void run_onednn(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint64_t count = o->count * stk_shape_elements(o->layer->out);
    const int rc = stk_onednn_run(task->step->onednn, o, task->thread, task->scratch);
    if (*task->rc == STOKER_OK)
        *task->rc = rc;
    if (o->op->kind == STK_OP_LINEAR_BACKWARD_WEIGHTS && o->bias_grad != NULL)
        add_bias_gradients(task);
    const bool forward = o->op->kind == STK_OP_CONV_FORWARD || o->op->kind == STK_OP_LINEAR_FORWARD;
    if (forward && o->op->relu && o->storage == STOKER_DTYPE_BFLOAT16)
        rectify_bfloat16((uint16_t *)(void *)o->y, count);
    else if (forward && o->op->relu)
        rectify_floats(o->y, count);
}

bool stk_cpu_has_bf16(void)
{
    const char *const wish = stk_environment("STOKER_BF16");
    if (wish != NULL && strcmp(wish, "off") == 0)
        return false;
    return stk_environment_refuses_code() == NULL &&
           stk_cpu_has(STK_CPU_AVX512F | STK_CPU_AVX512BW | STK_CPU_AVX512DQ | STK_CPU_AVX512VL |
                       STK_CPU_AVX512_BF16);
}

int stk_cpu_choose_onednn(struct stk_cpu_step *step, const struct stk_plan *plan,
                          const struct stk_op *op, stoker_dtype storage, uint32_t threads)
{
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    if (op->kind > STK_OP_LINEAR_BACKWARD_WEIGHTS || stk_environment_refuses_code() != NULL)
        return STOKER_OK;
    const uint32_t shard = (plan->options.batch + threads - 1) / threads;
    const int rc = stk_onednn_create(&step->onednn, layer, op->kind, storage, shard, threads);
    if (rc != STOKER_OK)
        return rc == STOKER_ENOTSUP ? STOKER_OK : rc;
    step->run = run_onednn;
    if (step->mode == STK_CPU_CHUNKED)
        step->mode = STK_CPU_SHARD;
    step->scratch_bytes = stk_onednn_scratch_bytes(step->onednn);
    return STOKER_OK;
}
