/* test_tuner.c - the number of workers is found, on machines made of arithmetic.
 *
 * A machine is the number of rows a second that n workers make; the consumer takes them as they
 * come (it stalls) or is slower (it does not). Time is the tuner's argument, so a minute
 * passes in a microsecond. Further down the workers, the ring and its order are modelled, too.
 */
#include "loader/pipeline/work/tuner.h"
#include "support/leaks.h"

#define STEP_NS UINT64_C(10000000)

typedef double rate_fn(uint32_t workers); /* rows per second */

struct world {
    struct stk_tuner tuner;
    rate_fn *rate;
    double stall_share;
    uint64_t drift_ns; /* the machine is three times as fast every other time, 0 = never */
    uint64_t now_ns;
    double rows;
    double stall_ns;
    double cpu_each; /* CPUs that one worker uses */
    double cpu_ns;
    uint32_t least, most; /* workers seen */
    uint32_t changes;
};

/* One whose workers mostly wait: CPU time limits nothing. */
static struct world world_make(rate_fn *rate, double stall_share, uint32_t first, uint32_t max)
{
    struct world world = { .rate = rate, .stall_share = stall_share, .now_ns = 1 };
    stk_tuner_init(&world.tuner, first, max, first);
    world.least = world.most = first;
    return world;
}

/* One whose workers use a CPU each. */
static struct world world_of_cpus(rate_fn *rate, uint32_t first, uint32_t max, uint32_t cpus)
{
    struct world world = world_make(rate, 0.5, first, max);
    world.cpu_each = 1;
    world.tuner.cpus = cpus;
    return world;
}

static double speed(const struct world *world)
{
    return world->drift_ns > 0 && world->now_ns / world->drift_ns % 2 == 1 ? 3.0 : 1.0;
}

static void live(struct world *world, double seconds)
{
    for (double t = 0; t < seconds; t += (double)STEP_NS / 1e9) {
        const uint32_t before = world->tuner.workers;
        world->now_ns += STEP_NS;
        world->rows += world->rate(before) * speed(world) * (double)STEP_NS / 1e9;
        world->stall_ns += world->stall_share * (double)STEP_NS;
        world->cpu_ns += world->cpu_each * before * (double)STEP_NS;
        const struct stk_look look = { .ns = world->now_ns,
                                       .batches = (uint64_t)world->rows,
                                       .stall_ns = (uint64_t)world->stall_ns,
                                       .rows = (uint64_t)world->rows,
                                       .spans = (uint64_t)world->rows,
                                       .cpu_ns = (uint64_t)world->cpu_ns };
        const uint32_t now = stk_tuner_step(&world->tuner, &look, look.batches);
        cr_assert_eq(now, world->tuner.workers);
        cr_assert_geq(now, 1);
        cr_assert_leq(now, world->tuner.workers_max);
        world->changes += now != before;
        world->least = now < world->least ? now : world->least;
        world->most = now > world->most ? now : world->most;
    }
}

static double linear(uint32_t workers)
{
    return 2000.0 * workers;
}

static double peak_at_5(uint32_t workers)
{
    return workers <= 5 ? 2000.0 * workers : 10000.0 - 1500.0 * (workers - 5);
}

static double fewer_is_better(uint32_t workers)
{
    return 20000.0 / workers;
}

static double flat(uint32_t workers)
{
    return 5000.0 + 0.0 * workers;
}

CleanTest(tuner, climbs_to_the_most_that_helps)
{
    struct world world = world_make(linear, 0.5, 2, 16);
    live(&world, 10);
    /* From 10 on one more worker gains less than 1.1; it must pass at least those. */
    cr_assert_geq(world.tuner.workers, 15);
}

CleanTest(tuner, stays_near_a_peak)
{
    struct world world = world_of_cpus(peak_at_5, 2, 32, 6);
    live(&world, 5);
    cr_assert_geq(world.tuner.best, 4);
    cr_assert_leq(world.tuner.best, 6);
    live(&world, 300);
    cr_assert_geq(world.tuner.best, 4);
    cr_assert_leq(world.tuner.best, 6);
    cr_assert_leq(world.most, 7);
}

/* Two workers use both CPUs: one fewer makes half of the rows, which is clear long before the
 * window ends. */
CleanTest(tuner, a_trial_of_too_few_workers_is_short)
{
    struct world world = world_of_cpus(linear, 2, 8, 2);
    live(&world, 1);
    cr_assert_eq(world.least, 1, "one worker was never tried");
    cr_assert_eq(world.tuner.best, 2);
    cr_assert_geq(world.rows, 0.97 * linear(2), "%.0f rows of %.0f", world.rows, linear(2));
}

CleanTest(tuner, gives_workers_back_where_fewer_are_faster)
{
    struct world world = world_make(fewer_is_better, 0.5, 8, 8);
    live(&world, 20);
    cr_assert_leq(world.tuner.best, 2);
}

CleanTest(tuner, changes_nothing_for_a_consumer_that_does_not_wait)
{
    struct world world = world_make(linear, 0.01, 3, 16);
    live(&world, 60);
    cr_assert_eq(world.changes, 0);
}

/* Tries that do not help become rare: two tries, each there and back, per rest. */
CleanTest(tuner, rests_where_nothing_helps)
{
    struct world world = world_of_cpus(flat, 4, 8, 5);
    live(&world, 600);
    cr_assert_leq(world.changes, 4 * (5 + 600 / 32));
    cr_assert_geq(world.changes, 4);
    cr_assert_geq(world.least, 3);
    cr_assert_leq(world.most, 5);
}

/* Trials cost little where workers mostly wait, and the one that failed may have been disturbed:
 * they are large, and not rare. */
CleanTest(tuner, keeps_trying_where_workers_wait)
{
    struct world world = world_make(flat, 0.5, 4, 32);
    live(&world, 60);
    cr_assert_eq(world.tuner.best, 4);
    cr_assert_eq(world.most, 8);
    world.rate = linear;
    live(&world, 8);
    cr_assert_eq(world.tuner.best, 32);
}

static double one_is_a_little_better(uint32_t workers)
{
    return workers == 1 ? 10800.0 : 10000.0;
}

/* 8 % more with one worker less: worth a change if the two share the CPUs, noise if they only
 * wait. */
CleanTest(tuner, gives_waiting_workers_back_for_a_clear_gain_only)
{
    struct world waiting = world_make(one_is_a_little_better, 0.5, 2, 2);
    live(&waiting, 20);
    cr_assert_eq(waiting.tuner.best, 2);
    struct world busy = world_of_cpus(one_is_a_little_better, 2, 2, 2);
    live(&busy, 20);
    cr_assert_eq(busy.tuner.best, 1);
}

static double ten_at_once(uint32_t workers)
{
    return 200.0 * (workers < 10 ? workers : 10);
}

/* Storage that serves ten reads at once: the step is halved until it fits. */
CleanTest(tuner, finds_how_many_the_storage_serves)
{
    struct world world = world_make(ten_at_once, 0.9, 2, 32);
    live(&world, 5);
    cr_assert_geq(world.tuner.best, 9);
    cr_assert_leq(world.tuner.best, 12);
    cr_assert_leq(world.most, 24);
}

/* Workers that keep every CPU busy are not joined by more, whatever the gain. */
CleanTest(tuner, adds_none_where_every_cpu_is_in_use)
{
    struct world world = world_of_cpus(linear, 2, 16, 2);
    live(&world, 60);
    cr_assert_eq(world.most, 2);
    world.cpu_each = 0.5; /* half of the time they wait */
    live(&world, 60);
    cr_assert_eq(world.tuner.best, 4);
    cr_assert_eq(world.most, 4);
}

/* A window with a pause in it shows a low rate. Taken for the rate of the number in use, it would
 * make any other number look faster. */
CleanTest(tuner, a_consumer_that_was_away_is_not_a_slow_pipeline)
{
    struct world world = world_make(linear, 0.9, 4, 4);
    for (int turn = 0; turn < 200; turn++) {
        live(&world, 0.2);
        world.now_ns += UINT64_C(300000000); /* away: no batches, no waiting */
        cr_assert_eq(world.tuner.best, 4);
    }
}

/* Trials are rare in the time that is worked: a pause of any length between two stretches does not
 * make the next one a stretch of trials, however short the stretches are. */
static void live_in_stretches(double seconds)
{
    struct world steady = world_make(flat, 0.9, 4, 4);
    struct world broken = world_make(flat, 0.9, 4, 4);
    live(&steady, 20);
    for (double lived = 0; lived < 20; lived += seconds) {
        live(&broken, seconds);
        broken.now_ns += UINT64_C(5000000000);
    }
    cr_assert_gt(steady.changes, 0);
    cr_assert_gt(broken.changes, 0);
    cr_assert_leq(broken.changes, steady.changes);
}

CleanTest(tuner, being_away_is_not_rest)
{
    live_in_stretches(0.2);
    live_in_stretches(0.06);
}

/* What is better in short stretches is found, too: a trial resumes where it was cut. */
CleanTest(tuner, finds_more_in_short_stretches)
{
    struct world world = world_make(linear, 0.5, 2, 4);
    for (int turn = 0; turn < 40; turn++) {
        live(&world, 0.05);
        world.now_ns += UINT64_C(300000000);
    }
    cr_assert_eq(world.tuner.best, 4);
}

/* The neighbor's window was fast because the machine was: the next window of the number in use
 * shows it. */
CleanTest(tuner, a_machine_that_drifts_is_not_a_number_that_helps)
{
    for (uint64_t drift_ns = 300000000; drift_ns <= 3000000000; drift_ns += 37000000) {
        struct world world = world_make(linear, 0.9, 2, 2);
        world.drift_ns = drift_ns;
        for (int second = 0; second < 100; second++) {
            live(&world, 1);
            cr_assert_eq(world.tuner.best, 2, "drift %llu", (unsigned long long)drift_ns);
        }
    }
}

CleanTest(tuner, one_worker_and_no_room_is_left_alone)
{
    struct world world = world_make(flat, 0.9, 1, 1);
    live(&world, 60);
    cr_assert_eq(world.changes, 0);
}
