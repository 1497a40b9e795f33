/* pass.c - runs a program: each thread of the team runs the plan on its samples.
 *
 *   prepare ─▶ barrier ─▶ steps ─▶ barrier ─▶ steps ─▶ barrier ─▶ ... ─▶ barrier
 *                         1        add 1's    2        add 2's           add the rest
 *                                  partials            1 is complete     all is complete
 *
 * Gradients that each thread sums apart are added after the next barrier that a step needs anyway,
 * and complete after the one that follows. */
#include "trainer/backend/cpu/program.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "trainer/backend/common/watch.h"
#include "trainer/backend/cpu/onednn/onednn.h"
#include "trainer/plan/precision.h"

/* One pass, shared by the threads. */
struct shared_pass {
    const struct stk_program *program;
    const struct stk_arenas *arenas;
    const struct stk_pass *pass;
    struct stk_loss losses[STK_CPU_THREADS_MAX];
    int rcs[STK_CPU_THREADS_MAX];
    uint32_t reported; /* slices of gradients; of thread 0 */
};

/* The pass as one thread sees it. */
struct worker {
    struct shared_pass *shared;
    const struct stk_program *program;
    uint32_t thread, threads;
    uint32_t added;       /* steps whose partial gradients this thread has added */
    struct stk_loss loss; /* on the stack, so that threads do not share a cache line */
    int rc;
};

static float *partial_of(const struct stk_program *program, const struct stk_cpu_step *step,
                         uint32_t thread)
{
    assert(thread >= 1);
    return (float *)(void *)(program->block + step->partial_at +
                             (thread - 1) * step->partial_bytes);
}

/* Parameters rounded to T, for an operation that reads those. */
static void take_rounded(struct stk_operands *o, const struct stk_program *program,
                         const struct stk_arenas *arenas)
{
    const struct stk_parameter *parameters = program->plan->model->parameters;
    const uint16_t *rounded = arenas->half_weights;
    if (!stk_is_narrow(o->storage) || !stk_reads_rounded(o->op->kind))
        return;
    assert(rounded != NULL);
    o->weight = (const float *)(const void *)(rounded + parameters[o->layer->weight].offset);
    if (o->layer->bias >= 0)
        o->bias = (const float *)(const void *)(rounded + parameters[o->layer->bias].offset);
}

static struct stk_cpu_task task_of(struct worker *worker, uint32_t index, uint32_t first,
                                   uint32_t count)
{
    const struct stk_program *program = worker->program;
    const struct stk_cpu_step *step = &program->steps[index];
    struct stk_cpu_task task = { .step = step,
                                 .team = program->backend->team,
                                 .thread = worker->thread,
                                 .threads = worker->threads,
                                 .loss = &worker->loss,
                                 .rc = &worker->rc };
    if (program->block != NULL) {
        task.scratch = program->block + program->scratch_bytes * worker->thread;
        task.shared = program->block + step->shared_at;
    }
    stk_operands_find(&task.o, program->plan, &program->plan->ops[index], worker->shared->arenas,
                      worker->shared->pass, first, count);
    take_rounded(&task.o, program, worker->shared->arenas);
    if (step->partial_bytes > 0 && worker->thread > 0) {
        task.o.weight_grad = partial_of(program, step, worker->thread);
        task.o.bias_grad = step->biases > 0 ? task.o.weight_grad + step->weights : NULL;
    }
    return task;
}

static void run_step(struct worker *worker, uint32_t index, uint32_t first, uint32_t count)
{
    const struct stk_cpu_task task = task_of(worker, index, first, count);
    task.step->run(&task);
}

static void prepare(struct worker *worker)
{
    const struct stk_program *program = worker->program;
    for (uint32_t i = 0; i < program->plan->op_count; i++) {
        const struct stk_cpu_step *step = &program->steps[i];
        if (step->prepare != NULL) {
            const struct stk_cpu_task task = task_of(worker, i, 0, 0);
            step->prepare(&task);
        }
        if (step->partial_bytes > 0 && worker->thread > 0)
            memset(partial_of(program, step, worker->thread), 0, step->partial_bytes);
    }
    stk_thread_team_barrier(program->backend->team);
}

static void poll(const struct worker *worker)
{
    if (worker->thread == 0)
        stk_watch_poll(worker->shared->pass->watch);
}

/* Steps [begin, end) on this thread's samples, at most `most` at a time. */
static void run_own(struct worker *worker, uint32_t begin, uint32_t end, uint32_t most)
{
    const struct stk_share share =
        stk_share_of(worker->shared->pass->count, worker->thread, worker->threads);
    for (uint64_t first = share.begin; first < share.end; first += most) {
        const uint64_t left = share.end - first;
        for (uint32_t i = begin; i < end; i++)
            run_step(worker, i, (uint32_t)first, (uint32_t)(left < most ? left : most));
        poll(worker);
    }
}

/* The end of the steps that follow `begin` in the same mode, without a barrier. */
static uint32_t end_of_run(const struct stk_program *program, uint32_t begin)
{
    uint32_t end = begin + 1;
    while (end < program->plan->op_count && !program->steps[end].barrier_before &&
           program->steps[end].mode == program->steps[begin].mode)
        end++;
    return end;
}

/* True if a rank without samples takes part, too. */
static bool meets_other_ranks(const struct stk_program *program, uint32_t index)
{
    const enum stk_op_kind kind = program->plan->ops[index].kind;
    return kind == STK_OP_BATCH_NORM_FORWARD || kind == STK_OP_BATCH_NORM_BACKWARD;
}

/* This thread's share of sum += part. */
static void add_share(const struct worker *worker, float *sum, const float *part, uint64_t count)
{
    const struct stk_share share = stk_share_of(count, worker->thread, worker->threads);
    for (uint64_t i = share.begin; i < share.end; i++)
        sum[i] += part[i];
}

static bool has_partials(const struct worker *worker, uint32_t index)
{
    return worker->program->steps[index].partial_bytes > 0 && worker->threads > 1;
}

/* This thread's share of the partials of steps [begin, end). */
static void add_partials(const struct worker *worker, uint32_t begin, uint32_t end)
{
    const struct stk_program *program = worker->program;
    for (uint32_t i = begin; i < end; i++) {
        const struct stk_cpu_step *step = &program->steps[i];
        if (!has_partials(worker, i))
            continue;
        struct stk_operands o; /* the arena's gradients, not this thread's */
        stk_operands_find(&o, program->plan, &program->plan->ops[i], worker->shared->arenas,
                          worker->shared->pass, 0, 0);
        for (uint32_t thread = 1; thread < worker->threads; thread++) {
            const float *partial = partial_of(program, step, thread);
            add_share(worker, o.weight_grad, partial, step->weights);
            if (o.bias_grad != NULL)
                add_share(worker, o.bias_grad, partial + step->weights, step->biases);
        }
    }
}

/* Waits until every thread has run the steps before `done`. */
static void meet(struct worker *worker, uint32_t done)
{
    uint32_t complete = worker->added; /* by every thread, as this barrier shows */
    while (complete < done && !has_partials(worker, complete))
        complete++;
    stk_thread_team_barrier(worker->program->backend->team);
    if (worker->thread == 0)
        stk_watch_complete(worker->shared->pass->watch, &worker->shared->reported, complete);
    add_partials(worker, worker->added, done);
    worker->added = done;
}

static void run_steps(struct worker *worker)
{
    const struct stk_program *program = worker->program;
    for (uint32_t i = 0; i < program->plan->op_count;) {
        const struct stk_cpu_step *step = &program->steps[i];
        if (step->barrier_before)
            meet(worker, i);
        if (step->mode == STK_CPU_TOGETHER) {
            if (worker->shared->pass->count > 0 || meets_other_ranks(program, i))
                run_step(worker, i, 0, worker->shared->pass->count);
            poll(worker);
            i++;
            continue;
        }
        const uint32_t end = end_of_run(program, i);
        run_own(worker, i, end, step->mode == STK_CPU_CHUNKED ? STK_CPU_CHUNK_SAMPLES : UINT32_MAX);
        i = end;
    }
}

static void run_thread(void *argument, uint32_t thread)
{
    struct shared_pass *shared = argument;
    struct worker worker = { .shared = shared,
                             .program = shared->program,
                             .thread = thread,
                             .threads = shared->program->backend->threads };
#ifdef STOKER_HAVE_DNNL
    const int before = stk_onednn_enter_thread();
#endif
    prepare(&worker);
    run_steps(&worker);
    meet(&worker, shared->program->plan->op_count);
#ifdef STOKER_HAVE_DNNL
    stk_onednn_leave_thread(before);
#endif
    shared->losses[thread] = worker.loss;
    shared->rcs[thread] = worker.rc;
}

int stk_cpu_run(struct stk_program *program, const struct stk_arenas *arenas,
                const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error)
{
    assert(pass->count >= 1 || pass->sums != NULL);
    assert(pass->count <= program->plan->options.batch);
    const int rc = stk_operands_check_labels(program->plan, pass, error);
    if (rc != STOKER_OK)
        return rc;
    struct shared_pass shared = { .program = program, .arenas = arenas, .pass = pass };
    stk_thread_team_run(program->backend->team, run_thread, &shared);
    stk_watch_complete(pass->watch, &shared.reported, program->plan->op_count);
    struct stk_loss sum = { 0 };
    for (uint32_t thread = 0; thread < program->backend->threads; thread++) {
        if (shared.rcs[thread] != STOKER_OK)
            return stk_refuse_option(error, shared.rcs[thread], "back end cpu: oneDNN failed");
        sum.loss_sum += shared.losses[thread].loss_sum;
        sum.correct += shared.losses[thread].correct;
        sum.count += shared.losses[thread].count;
    }
    *loss = sum;
    return STOKER_OK;
}
