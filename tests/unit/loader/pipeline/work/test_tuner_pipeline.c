/* test_tuner_pipeline.c - the tuner beside a modelled pipeline: workers with claimed rows, a ring
 * of batches, delivery in order, and a clock that only the model moves.
 *
 *   claim in order ─▶ each worker: row by row, waiting and then computing ─▶ head batch ─▶ consumer
 *
 * Its verdict is compared with the best of all fixed numbers of workers in the same model.
 */
#include "loader/pipeline/work/tuner.h"
#include "support/leaks.h"

enum {
    WORKERS_MAX = 16,
    DEPTH_MAX = 128,
    RING_ROWS_MAX = 4096,
    TICK_NS = 20000,
    LOOK_NS = 10000000
};

struct model {
    uint64_t wait_ns; /* per row: storage, or a decoder that sleeps */
    uint64_t cpu_ns;  /* per row */
    uint64_t step_ns; /* time the consumer spends on a batch */
    uint32_t batch;   /* rows */
    uint32_t slots;
    uint32_t depth; /* rows that a worker claims ahead */
    uint32_t cpus;
    uint32_t workers_max;
};

struct model_worker {
    uint64_t rows[DEPTH_MAX]; /* claimed, the oldest first */
    uint32_t count;
    int64_t wait_ns; /* left of the oldest */
    int64_t cpu_ns;
};

struct pipeline {
    struct model model;
    struct stk_tuner tuner;
    bool tuned;
    uint32_t active;
    uint32_t most; /* active so far */
    uint32_t changes;
    struct model_worker workers[WORKERS_MAX];
    bool done[RING_ROWS_MAX];
    uint64_t next_row; /* not claimed yet */
    uint64_t head;     /* batches delivered */
    uint64_t busy_until_ns;
    uint64_t look_at_ns;
    struct stk_look look;
    uint64_t unit_rows;
};

static struct pipeline *pipeline_make(const struct model *model, uint32_t workers, bool tuned)
{
    struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
    cr_assert_not_null(pipeline);
    cr_assert_leq(model->slots * model->batch, RING_ROWS_MAX);
    pipeline->model = *model;
    pipeline->tuned = tuned;
    pipeline->active = pipeline->most = workers;
    pipeline->look.ns = 1;
    pipeline->unit_rows = model->batch / 32 + 1;
    stk_tuner_init(&pipeline->tuner, workers, model->workers_max, model->cpus);
    return pipeline;
}

static void claim(struct pipeline *pipeline, uint32_t index)
{
    const struct model *model = &pipeline->model;
    struct model_worker *worker = &pipeline->workers[index];
    const uint64_t ring_rows = (uint64_t)model->slots * model->batch;
    while (index < pipeline->active && worker->count < model->depth &&
           pipeline->next_row < pipeline->head * model->batch + ring_rows &&
           (worker->count == 0 || (uint64_t)worker->count * pipeline->active < ring_rows))
        worker->rows[worker->count++] = pipeline->next_row++;
}

static void begin_row(struct pipeline *pipeline, struct model_worker *worker)
{
    worker->wait_ns = (int64_t)pipeline->model.wait_ns;
    worker->cpu_ns = (int64_t)pipeline->model.cpu_ns;
}

static void end_row(struct pipeline *pipeline, struct model_worker *worker)
{
    const uint64_t ring_rows = (uint64_t)pipeline->model.slots * pipeline->model.batch;
    pipeline->done[worker->rows[0] % ring_rows] = true;
    worker->count--;
    memmove(worker->rows, worker->rows + 1, worker->count * sizeof(worker->rows[0]));
    pipeline->look.rows++;
    pipeline->look.spans += pipeline->look.rows % pipeline->unit_rows == 0;
    begin_row(pipeline, worker);
}

/* A tick of one worker, which has this part of a CPU when it computes. */
static void work(struct pipeline *pipeline, struct model_worker *worker, double part)
{
    int64_t left_ns = TICK_NS;
    while (worker->count > 0 && left_ns > 0) {
        if (worker->wait_ns > 0) {
            const int64_t waited_ns = worker->wait_ns < left_ns ? worker->wait_ns : left_ns;
            worker->wait_ns -= waited_ns;
            left_ns -= waited_ns;
        } else {
            const int64_t able_ns = (int64_t)((double)left_ns * part);
            const int64_t used_ns = worker->cpu_ns < able_ns ? worker->cpu_ns : able_ns;
            worker->cpu_ns -= used_ns;
            pipeline->look.cpu_ns += (uint64_t)used_ns;
            left_ns -= used_ns == able_ns ? left_ns : (int64_t)((double)used_ns / part);
        }
        if (worker->wait_ns <= 0 && worker->cpu_ns <= 0)
            end_row(pipeline, worker);
    }
}

static bool head_is_done(const struct pipeline *pipeline)
{
    const uint64_t ring_rows = (uint64_t)pipeline->model.slots * pipeline->model.batch;
    for (uint32_t row = 0; row < pipeline->model.batch; row++)
        if (!pipeline->done[(pipeline->head * pipeline->model.batch + row) % ring_rows])
            return false;
    return true;
}

static void tune(struct pipeline *pipeline)
{
    if (!pipeline->tuned || pipeline->look.ns < pipeline->look_at_ns)
        return;
    pipeline->look_at_ns = pipeline->look.ns + LOOK_NS;
    pipeline->look.batches = pipeline->head;
    const uint32_t active = stk_tuner_step(&pipeline->tuner, &pipeline->look,
                                           pipeline->next_row / pipeline->model.batch + 1);
    pipeline->changes += active != pipeline->active;
    pipeline->active = active;
    pipeline->most = active > pipeline->most ? active : pipeline->most;
}

static void consume(struct pipeline *pipeline)
{
    const uint64_t ring_rows = (uint64_t)pipeline->model.slots * pipeline->model.batch;
    while (pipeline->busy_until_ns <= pipeline->look.ns) {
        if (!head_is_done(pipeline)) {
            pipeline->look.stall_ns += TICK_NS;
            return;
        }
        for (uint32_t row = 0; row < pipeline->model.batch; row++)
            pipeline->done[(pipeline->head * pipeline->model.batch + row) % ring_rows] = false;
        pipeline->head++;
        pipeline->busy_until_ns = pipeline->look.ns + pipeline->model.step_ns;
        tune(pipeline);
        if (pipeline->model.step_ns == 0)
            return; /* at most one batch a tick is enough */
    }
}

static void live(struct pipeline *pipeline, double seconds)
{
    const uint64_t end_ns = pipeline->look.ns + (uint64_t)(seconds * 1e9);
    for (; pipeline->look.ns < end_ns; pipeline->look.ns += TICK_NS) {
        uint32_t computing = 0;
        for (uint32_t i = 0; i < pipeline->model.workers_max; i++) {
            const uint32_t before = pipeline->workers[i].count;
            claim(pipeline, i);
            if (before == 0)
                begin_row(pipeline, &pipeline->workers[i]);
            computing += pipeline->workers[i].count > 0 && pipeline->workers[i].wait_ns <= 0;
        }
        const double part =
            computing > pipeline->model.cpus ? (double)pipeline->model.cpus / computing : 1;
        for (uint32_t i = 0; i < pipeline->model.workers_max; i++)
            work(pipeline, &pipeline->workers[i], part);
        consume(pipeline);
    }
}

/* Batches a second over the next few seconds. */
static double rate(struct pipeline *pipeline, double seconds)
{
    const uint64_t before = pipeline->head;
    live(pipeline, seconds);
    return (double)(pipeline->head - before) / seconds;
}

static double best_fixed_rate(const struct model *model)
{
    double best = 0;
    for (uint32_t workers = 1; workers <= model->workers_max; workers++) {
        struct pipeline *pipeline = pipeline_make(model, workers, false);
        live(pipeline, 1);
        const double found = rate(pipeline, 2);
        best = found > best ? found : best;
        free(pipeline);
    }
    return best;
}

static void expect_best_after(struct pipeline *pipeline, double seconds)
{
    const struct model *model = &pipeline->model;
    const double best = best_fixed_rate(model);
    live(pipeline, seconds);
    const double found = rate(pipeline, 2);
    cr_assert_geq(found, 0.9 * best, "%.0f of %.0f batches/s, %u workers: wait %llu us, batch %u",
                  found, best, pipeline->active, (unsigned long long)model->wait_ns / 1000,
                  model->batch);
}

CleanTest(tuner_pipeline, climbs_on_slow_reads_within_5_s)
{
    static const uint64_t waits_us[] = { 300, 1000, 2000, 5000 };
    static const struct {
        uint32_t batch, slots, depth;
    } shapes[] = {
        { 4, 64, 16 }, { 16, 20, 128 }, { 16, 64, 16 }, { 64, 12, 128 }, { 256, 6, 128 }
    };
    for (size_t i = 0; i < sizeof(waits_us) / sizeof(waits_us[0]); i++)
        for (size_t j = 0; j < sizeof(shapes) / sizeof(shapes[0]); j++) {
            const struct model model = { .wait_ns = waits_us[i] * 1000,
                                         .cpu_ns = 20000,
                                         .batch = shapes[j].batch,
                                         .slots = shapes[j].slots,
                                         .depth = shapes[j].depth,
                                         .cpus = 2,
                                         .workers_max = 8 };
            struct pipeline *pipeline = pipeline_make(&model, 2, true);
            expect_best_after(pipeline, 5);
            free(pipeline);
        }
}

CleanTest(tuner_pipeline, stays_within_the_cpus_where_workers_compute)
{
    const struct model model = {
        .cpu_ns = 200000, .batch = 16, .slots = 20, .depth = 1, .cpus = 2, .workers_max = 8
    };
    struct pipeline *pipeline = pipeline_make(&model, 2, true);
    live(pipeline, 30);
    cr_assert_eq(pipeline->most, 2);
    free(pipeline);
}

CleanTest(tuner_pipeline, leaves_a_slow_consumer_alone)
{
    const struct model model = { .wait_ns = 500000,
                                 .step_ns = 10000000,
                                 .batch = 16,
                                 .slots = 20,
                                 .depth = 16,
                                 .cpus = 2,
                                 .workers_max = 8 };
    struct pipeline *pipeline = pipeline_make(&model, 2, true);
    live(pipeline, 30);
    cr_assert_eq(pipeline->changes, 0);
    free(pipeline);
}

/* The page cache serves the first seconds. After a minute the tuner rests for half of one. */
CleanTest(tuner_pipeline, climbs_when_warm_storage_turns_cold)
{
    const struct model warm = {
        .cpu_ns = 20000, .batch = 64, .slots = 12, .depth = 128, .cpus = 2, .workers_max = 8
    };
    static const double warm_seconds[] = { 3, 63 };
    for (int i = 0; i < 2; i++) {
        struct pipeline *pipeline = pipeline_make(&warm, 2, true);
        live(pipeline, warm_seconds[i]);
        cr_assert_eq(pipeline->most, 2);
        pipeline->model.wait_ns = 2000000;
        expect_best_after(pipeline, 5);
        free(pipeline);
    }
}
