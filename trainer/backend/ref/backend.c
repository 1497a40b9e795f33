/* backend.c - the `ref` back end: one thread, plain loops. The reference that tests compare with.
 * 16-bit values are converted to float for each operation, in scratch. */
#include "trainer/backend/ref/narrow.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/common/watch.h"
#include "trainer/backend/ref/rounding.h"

struct stk_backend {
    uint32_t threads;
};

struct stk_program {
    const struct stk_plan *plan;
    void *scratch; /* NULL if T is float32 */
};

static int ref_create(struct stk_backend **out, const struct stk_backend_options *options,
                      stoker_error *error)
{
    (void)options;
    struct stk_backend *backend = stk_calloc(1, sizeof(*backend));
    if (backend == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "back end ref");
    backend->threads = 1;
    *out = backend;
    return STOKER_OK;
}

static void ref_destroy(struct stk_backend *backend)
{
    stk_free(backend);
}

static uint32_t ref_threads(const struct stk_backend *backend)
{
    return backend->threads;
}

static void *ref_allocate(struct stk_backend *backend, size_t bytes)
{
    (void)backend;
    return stk_calloc(1, bytes);
}

static void ref_release(struct stk_backend *backend, void *memory)
{
    (void)backend;
    stk_free(memory);
}

static int ref_workspace_bytes(struct stk_backend *backend, const struct stk_plan *plan,
                               uint64_t *out, stoker_error *error)
{
    (void)backend;
    const int rc = stk_operands_check_plan(plan, error);
    if (rc == STOKER_OK)
        *out = sizeof(struct stk_program) + stk_narrow_scratch_bytes(plan);
    return rc;
}

static int ref_load(struct stk_program **out, struct stk_backend *backend,
                    const struct stk_plan *plan, stoker_error *error)
{
    (void)backend;
    const int rc = stk_operands_check_plan(plan, error);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t scratch_bytes = stk_narrow_scratch_bytes(plan);
    struct stk_program *program = stk_calloc(1, sizeof(*program));
    if (program != NULL)
        program->plan = plan;
    if (program != NULL && scratch_bytes > 0)
        program->scratch = stk_calloc(1, scratch_bytes);
    if (program == NULL || (scratch_bytes > 0 && program->scratch == NULL)) {
        stk_free(program);
        return stk_refuse_option(error, STOKER_ENOMEM, "back end ref");
    }
    *out = program;
    return STOKER_OK;
}

static void ref_unload(struct stk_program *program)
{
    if (program == NULL)
        return;
    stk_free(program->scratch);
    stk_free(program);
}

static void run_op(const struct stk_program *program, const struct stk_op *op,
                   const struct stk_arenas *arenas, const struct stk_pass *pass,
                   struct stk_loss *loss)
{
    struct stk_operands operands;
    if (program->scratch != NULL) {
        stk_narrow_run(program->plan, op, arenas, pass, program->scratch, loss);
        return;
    }
    stk_operands_find(&operands, program->plan, op, arenas, pass, 0, pass->count);
    stk_ref_ops[op->kind](&operands, loss);
}

static int ref_run(struct stk_program *program, const struct stk_arenas *arenas,
                   const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error)
{
    const struct stk_plan *plan = program->plan;
    assert(pass->count >= 1 || pass->sums != NULL);
    assert(pass->count <= plan->options.batch);
    const int rc = stk_operands_check_labels(plan, pass, error);
    if (rc != STOKER_OK)
        return rc;
    struct stk_loss found = { 0 };
    uint32_t reported = 0;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        run_op(program, &plan->ops[i], arenas, pass, &found);
        stk_watch_complete(pass->watch, &reported, i + 1);
        stk_watch_poll(pass->watch);
    }
    *loss = found;
    return STOKER_OK;
}

static void ref_clear(struct stk_backend *backend, float *floats, uint64_t count)
{
    (void)backend;
    memset(floats, 0, count * sizeof(float));
}

static double ref_norm_squared(struct stk_backend *backend, const float *floats, uint64_t count,
                               bool *finite)
{
    (void)backend;
    double sum = 0;
    *finite = true;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)floats[i] * (double)floats[i];
        if (!isfinite(floats[i]))
            *finite = false;
    }
    return sum;
}

static void ref_update(struct stk_backend *backend, const struct stk_update *update)
{
    (void)backend;
    stk_update_range(update, 0, update->floats);
    if (update->half_weights != NULL)
        stk_narrow(update->half_weights, update->parameters, update->floats, update->storage);
}

static int ref_narrow(struct stk_backend *backend, void *half_weights, const float *parameters,
                      uint64_t count, stoker_dtype storage, stoker_error *error)
{
    (void)backend;
    (void)error;
    stk_narrow(half_weights, parameters, count, storage);
    return STOKER_OK;
}

const struct stk_backend_ops stk_backend_ref = {
    .name = "ref",
    .storages =
        1U << STOKER_DTYPE_FLOAT32 | 1U << STOKER_DTYPE_FLOAT16 | 1U << STOKER_DTYPE_BFLOAT16,
    .create = ref_create,
    .destroy = ref_destroy,
    .threads = ref_threads,
    .allocate = ref_allocate,
    .release = ref_release,
    .workspace_bytes = ref_workspace_bytes,
    .load = ref_load,
    .unload = ref_unload,
    .run = ref_run,
    .clear = ref_clear,
    .norm_squared = ref_norm_squared,
    .update = ref_update,
    .narrow = ref_narrow,
};
