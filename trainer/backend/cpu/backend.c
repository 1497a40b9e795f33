/* backend.c - the `cpu` back end: a thread team, programs, and loops over arenas. pass.c runs a
 * program. */
#include "trainer/backend/cpu/program.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cpu/onednn/onednn.h"
#include "trainer/backend/cpu/operations.h"
#include "trainer/backend/ref/rounding.h"

#ifdef STOKER_HAVE_DNNL
#define BF16_NEEDS "AVX512_BF16, which this CPU lacks"
#else
#define BF16_NEEDS "oneDNN, which this build lacks"
#endif

/* Loops on copies would work anywhere, but slower than in float32, which is not what bfloat16 is
 * asked for. */
static int check_type(const struct stk_backend_options *options, stoker_error *error)
{
    if (options->storage != STOKER_DTYPE_BFLOAT16 || stk_cpu_has_bf16())
        return STOKER_OK;
    return stk_refuse_option(error, STOKER_ENOTSUP,
                             "precision bfloat16: back end cpu needs " BF16_NEEDS
                             "; float32 is fast here, and back end ref computes in bfloat16 on any "
                             "CPU");
}

static int cpu_create(struct stk_backend **out, const struct stk_backend_options *options,
                      stoker_error *error)
{
    int rc = check_type(options, error);
    if (rc != STOKER_OK)
        return rc;
    uint32_t threads = options->threads == 0 ? stk_cpu_count() : options->threads;
    if (threads > STK_CPU_THREADS_MAX)
        threads = STK_CPU_THREADS_MAX;
    struct stk_backend *backend = stk_calloc(1, sizeof(*backend));
    if (backend == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "back end cpu");
    backend->threads = threads;
    backend->plain = options->plain;
    rc = stk_thread_team_create(&backend->team, "stoker-train", threads);
    if (rc != STOKER_OK) {
        stk_free(backend);
        return stk_refuse_option(error, rc, "back end cpu, %u threads", threads);
    }
    *out = backend;
    return STOKER_OK;
}

static void cpu_destroy(struct stk_backend *backend)
{
    if (backend == NULL)
        return;
    stk_thread_team_destroy(backend->team);
    stk_free(backend);
}

static uint32_t cpu_threads(const struct stk_backend *backend)
{
    return backend->threads;
}

static void *cpu_allocate(struct stk_backend *backend, size_t bytes)
{
    (void)backend;
    return stk_calloc(1, bytes);
}

static void cpu_release(struct stk_backend *backend, void *memory)
{
    (void)backend;
    stk_free(memory);
}

static void cpu_unload(struct stk_program *program)
{
    if (program == NULL)
        return;
#ifdef STOKER_HAVE_DNNL
    for (uint32_t i = 0; i < program->plan->op_count; i++)
        stk_onednn_destroy(program->steps[i].onednn);
#endif
    stk_free(program->block);
    stk_free(program);
}

static void lay_out_block(struct stk_program *program)
{
    const uint32_t steps = program->plan->op_count;
    const uint32_t threads = program->backend->threads;
    for (uint32_t i = 0; i < steps; i++)
        if (program->steps[i].scratch_bytes > program->scratch_bytes)
            program->scratch_bytes = program->steps[i].scratch_bytes;
    program->scratch_bytes = stk_round_to_line(program->scratch_bytes);
    uint64_t end = program->scratch_bytes * threads;
    for (uint32_t i = 0; i < steps; i++) {
        struct stk_cpu_step *step = &program->steps[i];
        step->shared_at = end;
        step->partial_at = end + stk_round_to_line(step->shared_bytes);
        end = step->partial_at + step->partial_bytes * (threads - 1);
    }
    program->block_bytes = end;
}

static uint64_t program_bytes(const struct stk_plan *plan)
{
    return sizeof(struct stk_program) + plan->op_count * sizeof(struct stk_cpu_step);
}

/* All but the block. */
static int make_program(struct stk_program **out, struct stk_backend *backend,
                        const struct stk_plan *plan, stoker_error *error)
{
    int rc = stk_operands_check_plan(plan, error);
    if (rc != STOKER_OK)
        return rc;
    struct stk_program *program = stk_calloc(1, program_bytes(plan));
    if (program == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "back end cpu");
    program->backend = backend;
    program->plan = plan;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        rc = stk_cpu_choose(&program->steps[i], plan, &plan->ops[i], backend->threads,
                            backend->plain);
        if (rc != STOKER_OK) {
            cpu_unload(program);
            return stk_refuse_option(error, rc, "back end cpu, layer %s",
                                     plan->model->layers[plan->ops[i].layer].name);
        }
    }
    stk_cpu_place_barriers(program->steps, plan);
    lay_out_block(program);
    *out = program;
    return STOKER_OK;
}

static uint64_t bytes_of(const struct stk_program *program)
{
    uint64_t bytes = program_bytes(program->plan) + program->block_bytes;
#ifdef STOKER_HAVE_DNNL
    for (uint32_t i = 0; i < program->plan->op_count; i++)
        if (program->steps[i].onednn != NULL)
            bytes += stk_onednn_own_bytes(program->steps[i].onednn);
#endif
    return bytes;
}

static int cpu_workspace_bytes(struct stk_backend *backend, const struct stk_plan *plan,
                               uint64_t *out, stoker_error *error)
{
    struct stk_program *program = NULL;
    const int rc = make_program(&program, backend, plan, error);
    if (rc != STOKER_OK)
        return rc;
    assert(program != NULL);
    *out = bytes_of(program);
    cpu_unload(program);
    return STOKER_OK;
}

static int cpu_load(struct stk_program **out, struct stk_backend *backend,
                    const struct stk_plan *plan, stoker_error *error)
{
    struct stk_program *program = NULL;
    const int rc = make_program(&program, backend, plan, error);
    if (rc != STOKER_OK)
        return rc;
    assert(program != NULL);
    if (program->block_bytes > 0) {
        program->block = stk_calloc(1, program->block_bytes);
        if (program->block == NULL) {
            cpu_unload(program);
            return stk_refuse_option(error, STOKER_ENOMEM, "back end cpu, scratch");
        }
    }
    *out = program;
    return STOKER_OK;
}

/* A share of an arena, aligned to cache lines. */
static struct stk_share floats_of(uint64_t count, uint32_t thread, uint32_t threads)
{
    const uint64_t line = STK_CACHE_LINE / sizeof(float);
    const struct stk_share lines = stk_share_of((count + line - 1) / line, thread, threads);
    return (struct stk_share){ .begin = lines.begin * line,
                               .end = lines.end * line < count ? lines.end * line : count };
}

struct clearing {
    float *floats;
    uint64_t count;
    uint32_t threads;
};

static void clear_share(void *argument, uint32_t thread)
{
    const struct clearing *clearing = argument;
    const struct stk_share share = floats_of(clearing->count, thread, clearing->threads);
    if (share.begin < share.end)
        memset(clearing->floats + share.begin, 0, (share.end - share.begin) * sizeof(float));
}

static void cpu_clear(struct stk_backend *backend, float *floats, uint64_t count)
{
    struct clearing clearing = { floats, count, backend->threads };
    stk_thread_team_run(backend->team, clear_share, &clearing);
}

enum { NORM_LANES = 8 };

struct norm {
    const float *floats;
    uint64_t count;
    uint32_t threads;
    double sums[STK_CPU_THREADS_MAX];
};

/* Eight sums side by side, added in a fixed order: the same bits on every run. */
static void norm_share(void *argument, uint32_t thread)
{
    struct norm *norm = argument;
    const struct stk_share share = floats_of(norm->count, thread, norm->threads);
    double sums[NORM_LANES] = { 0 };
    uint64_t i = share.begin;
    for (; i + NORM_LANES <= share.end; i += NORM_LANES)
        for (int lane = 0; lane < NORM_LANES; lane++) {
            const double value = (double)norm->floats[i + (uint64_t)lane];
            sums[lane] += value * value;
        }
    for (; i < share.end; i++)
        sums[0] += (double)norm->floats[i] * (double)norm->floats[i];
    double sum = 0;
    for (int lane = 0; lane < NORM_LANES; lane++)
        sum += sums[lane];
    norm->sums[thread] = sum;
}

static double cpu_norm_squared(struct stk_backend *backend, const float *floats, uint64_t count,
                               bool *finite)
{
    struct norm norm = { .floats = floats, .count = count, .threads = backend->threads };
    stk_thread_team_run(backend->team, norm_share, &norm);
    double sum = 0;
    for (uint32_t thread = 0; thread < backend->threads; thread++)
        sum += norm.sums[thread];
    /* Squares of floats do not overflow a double: the sum is finite if all values are. */
    *finite = isfinite(sum) != 0;
    return sum;
}

struct updating {
    const struct stk_update *update;
    uint32_t threads;
};

/* Parameters are rounded while a cache still has them. */
enum { ROUNDED_FLOATS = 8192 };

static void update_share(void *argument, uint32_t thread)
{
    const struct updating *updating = argument;
    const struct stk_update *update = updating->update;
    const struct stk_share share = floats_of(update->floats, thread, updating->threads);
    if (update->half_weights == NULL && share.begin < share.end)
        stk_update_range(update, share.begin, share.end);
    if (update->half_weights == NULL)
        return;
    for (uint64_t at = share.begin; at < share.end; at += ROUNDED_FLOATS) {
        const uint64_t end = share.end - at < ROUNDED_FLOATS ? share.end : at + ROUNDED_FLOATS;
        stk_update_range(update, at, end);
        stk_narrow((uint16_t *)update->half_weights + at, update->parameters + at, end - at,
                   update->storage);
    }
}

static void cpu_update(struct stk_backend *backend, const struct stk_update *update)
{
    struct updating updating = { update, backend->threads };
    stk_thread_team_run(backend->team, update_share, &updating);
}

struct narrowing {
    uint16_t *to;
    const float *from;
    uint64_t count;
    uint32_t threads;
    stoker_dtype storage;
};

static void narrow_share(void *argument, uint32_t thread)
{
    const struct narrowing *n = argument;
    const struct stk_share share = floats_of(n->count, thread, n->threads);
    if (share.begin < share.end)
        stk_narrow(n->to + share.begin, n->from + share.begin, share.end - share.begin, n->storage);
}

static int cpu_narrow(struct stk_backend *backend, void *half_weights, const float *parameters,
                      uint64_t count, stoker_dtype storage, stoker_error *error)
{
    (void)error;
    struct narrowing narrowing = { half_weights, parameters, count, backend->threads, storage };
    stk_thread_team_run(backend->team, narrow_share, &narrowing);
    return STOKER_OK;
}

const struct stk_backend_ops stk_backend_cpu = {
    .name = "cpu",
    .storages = 1U << STOKER_DTYPE_FLOAT32 | 1U << STOKER_DTYPE_BFLOAT16,
    .create = cpu_create,
    .destroy = cpu_destroy,
    .threads = cpu_threads,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .workspace_bytes = cpu_workspace_bytes,
    .load = cpu_load,
    .unload = cpu_unload,
    .run = stk_cpu_run,
    .clear = cpu_clear,
    .norm_squared = cpu_norm_squared,
    .update = cpu_update,
    .narrow = cpu_narrow,
};
