/* tuner.c - see tuner.h. */
#include "loader/pipeline/work/tuner.h"

#define WINDOW_NS   UINT64_C(80000000)
#define REST_NS     UINT64_C(2000000000) /* after both directions failed; doubles up to 32 s */
#define AWAY_NS     UINT64_C(20000000)   /* between two checks */
#define HOPELESS_NS UINT64_C(10000000)   /* length of a trial with clearly too few workers */

enum {
    WINDOW_SPANS = 12, /* spans per worker in a window: fewer say little about the rate */
    REST_DOUBLINGS = 4,
    /* If workers mostly wait, a trial costs little, and one that failed by a moment's noise costs
     * much. */
    REST_DOUBLINGS_WAITING = 1,
    STEP_PART = 4, /* steps up are 1/N of the workers: a smaller one gains less than the noise */
    STEP_PART_DOWN = 8 /* steps down */
};

static const double STALL_SHARE = 0.05; /* less waiting does not justify a change */
static const double GAIN = 1.05;        /* less gain from fewer workers is noise; */
static const double GAIN_WAITING = 1.1; /* if workers mostly wait, since fewer save no CPU */
static const double WORKER_GAIN = 0.25; /* least gain of an added worker, as a fraction of
                                            the others' average */
static const double CLEAR_GAIN = 0.5;   /* per worker, of many: needs no check */
static const double CLEAR_GROWTH = 1.5; /* many: half as many again */
static const double HOPELESS = 0.8; /* fraction of the best rate at which a trial is cut short */
static const double OTHER_REGIME = 2.0; /* a rate this much higher or lower ends a rest */

void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max, uint32_t cpus)
{
    *tuner = (struct stk_tuner){
        .workers = workers,
        .workers_max = workers_max,
        .cpus = cpus,
        .best = workers,
        .stride = workers,
    };
}

static double rate_of(const struct stk_look *window)
{
    return (double)window->rows * 1e9 / (double)window->ns;
}

static bool stalls(const struct stk_look *window)
{
    return (double)window->stall_ns > STALL_SHARE * (double)window->ns;
}

static void change(struct stk_tuner *tuner, uint32_t workers)
{
    if (workers == tuner->workers)
        return;
    tuner->workers = workers;
    tuner->drain_end = tuner->claimed;
}

static void settle_tuner(struct stk_tuner *tuner, uint32_t workers)
{
    tuner->best = workers;
    tuner->state = STK_TUNER_SETTLED;
    change(tuner, workers);
}

static uint32_t at_least_one(uint32_t count)
{
    return count > 0 ? count : 1;
}

/* Workers that the CPUs can feed if each uses as much CPU time as those in the window; more than
 * CPUs if they mostly wait. */
static uint32_t room(const struct stk_tuner *tuner, const struct stk_look *window)
{
    const double fed = (double)tuner->workers * tuner->cpus * (double)window->ns;
    const double used = (double)window->cpu_ns;
    const double most = 2.0 * tuner->workers_max; /* more makes no difference */
    return used * most <= fed ? (uint32_t)most : (uint32_t)(fed / used);
}

/* Returns true if the workers use less than half of their time and of the CPUs. */
static bool mostly_wait(const struct stk_tuner *tuner, const struct stk_look *window)
{
    return 2 * window->cpu_ns < tuner->workers * window->ns &&
           room(tuner, window) >= 2 * tuner->workers;
}

/* The number to try next in the current direction; the best one if there is none. */
static uint32_t next_trial(const struct stk_tuner *tuner, const struct stk_look *window)
{
    if (tuner->down) {
        const uint32_t step = at_least_one(tuner->best / STEP_PART_DOWN);
        return tuner->best > step ? tuner->best - step : tuner->best;
    }
    const uint32_t room_now = room(tuner, window);
    const uint32_t most = room_now < tuner->workers_max ? room_now : tuner->workers_max;
    const uint32_t wanted = tuner->best + tuner->stride;
    return wanted < most ? wanted : most > tuner->best ? most : tuner->best;
}

static uint32_t least_stride(const struct stk_tuner *tuner)
{
    return at_least_one(tuner->best / STEP_PART);
}

static void begin_trial(struct stk_tuner *tuner, const struct stk_look *window)
{
    tuner->best_rate = rate_of(window);
    uint32_t trial = next_trial(tuner, window);
    if (trial == tuner->best) {
        tuner->down = !tuner->down;
        trial = next_trial(tuner, window);
    }
    if (trial == tuner->best) {
        tuner->rest_ns = REST_NS;
        return;
    }
    tuner->trial = trial;
    tuner->state = STK_TUNER_TRYING;
    change(tuner, trial);
}

static void fail_trial(struct stk_tuner *tuner, const struct stk_look *window)
{
    const uint32_t least = least_stride(tuner);
    const uint32_t tried = tuner->trial > tuner->best ? tuner->trial - tuner->best : 0;
    const bool waits = mostly_wait(tuner, window);
    settle_tuner(tuner, tuner->best);
    if (tried > least) { /* fewer of these may help */
        tuner->stride = tried / 2 > least ? tried / 2 : least;
        return;
    }
    tuner->down = !tuner->down;
    tuner->stride = waits ? tuner->best : least;
    tuner->failures++;
    if (tuner->failures < 2)
        return;
    const uint32_t rests = tuner->failures / 2 - 1;
    const uint32_t most = waits ? REST_DOUBLINGS_WAITING : REST_DOUBLINGS;
    tuner->rest_ns = REST_NS << (rests < most ? rests : most);
}

static void accept_trial(struct stk_tuner *tuner)
{
    settle_tuner(tuner, tuner->trial);
    tuner->failures = 0;
    tuner->stride = least_stride(tuner);
}

/* Least rate of the trial, as a multiple of the best number's rate; worker_gain is the least gain
 * of an added worker, as a fraction of the others' average. */
static double gain_wanted(const struct stk_tuner *tuner, const struct stk_look *window,
                          double worker_gain)
{
    const double growth = (double)tuner->trial / tuner->best;
    if (growth < 1)
        return mostly_wait(tuner, window) ? GAIN_WAITING : GAIN;
    return 1 + worker_gain * (growth - 1);
}

static void judge_trial(struct stk_tuner *tuner, const struct stk_look *window)
{
    const double rate = rate_of(window);
    if (rate <= tuner->best_rate * gain_wanted(tuner, window, WORKER_GAIN)) {
        fail_trial(tuner, window);
    } else if (tuner->trial >= CLEAR_GROWTH * tuner->best &&
               rate > tuner->best_rate * gain_wanted(tuner, window, CLEAR_GAIN)) {
        accept_trial(tuner);
        tuner->stride = tuner->best; /* this many again */
        if (stalls(window))
            begin_trial(tuner, window);
    } else {
        tuner->trial_rate = rate;
        tuner->state = STK_TUNER_CHECKING;
        change(tuner, tuner->best);
    }
}

static void judge(struct stk_tuner *tuner, const struct stk_look *window)
{
    switch (tuner->state) {
    case STK_TUNER_SETTLED:
        if (stalls(window))
            begin_trial(tuner, window);
        break;
    case STK_TUNER_TRYING:
        judge_trial(tuner, window);
        break;
    case STK_TUNER_CHECKING:
        if (tuner->trial_rate <= rate_of(window) * gain_wanted(tuner, window, WORKER_GAIN))
            fail_trial(tuner, window);
        else
            accept_trial(tuner);
        break;
    }
}

/* A rest suits the rate before it. At a different rate (the page cache turned cold, the storage
 * recovered) more workers may help again. */
static void look_at_rest(struct stk_tuner *tuner, const struct stk_look *window)
{
    const double rate = rate_of(window);
    if (!stalls(window) ||
        (rate < tuner->best_rate * OTHER_REGIME && rate > tuner->best_rate / OTHER_REGIME))
        return;
    tuner->rest_ns = 0;
    tuner->failures = 0;
    tuner->down = false;
    tuner->stride = tuner->best;
}

/* A trial with too few CPU-bound workers loses throughput: it ends as soon as that is clear. */
static bool is_hopeless(const struct stk_tuner *tuner, const struct stk_look *window)
{
    return tuner->state == STK_TUNER_TRYING && tuner->trial < tuner->best &&
           window->ns >= HOPELESS_NS && rate_of(window) < HOPELESS * tuner->best_rate;
}

static bool is_complete(const struct stk_tuner *tuner, const struct stk_look *window)
{
    return window->spans >= (uint64_t)WINDOW_SPANS * tuner->workers &&
           (window->ns >= WINDOW_NS || is_hopeless(tuner, window));
}

uint32_t stk_tuner_step(struct stk_tuner *tuner, const struct stk_look *now, uint64_t claimed)
{
    struct stk_look passed;
    struct stk_look *window = &tuner->window;
    const bool resting = tuner->rest_ns > 0;
    const bool working =
        stk_activity_step(&tuner->activity, now, AWAY_NS, &passed) == STK_ACTIVITY_WORK;
    tuner->claimed = claimed;
    if (!working || now->batches < tuner->drain_end)
        return tuner->workers;
    tuner->rest_ns -= passed.ns < tuner->rest_ns ? passed.ns : tuner->rest_ns;
    stk_look_add(window, &passed);
    if (!is_complete(tuner, window))
        return tuner->workers;
    const struct stk_look complete = *window;
    *window = (struct stk_look){ 0 };
    if (resting)
        look_at_rest(tuner, &complete);
    else
        judge(tuner, &complete);
    return tuner->workers;
}
