/* tuner.c - see tuner.h. */
#include "loader/road/tuner.h"

#define WINDOW_NS UINT64_C(50000000)
#define REST_NS   UINT64_C(2000000000) /* after both directions failed; doubles up to 32 s */
#define AWAY_NS   UINT64_C(20000000)   /* between two looks */

enum { WINDOW_BATCHES = 16, REST_DOUBLINGS = 4 };

static const double STALL_SHARE = 0.05; /* less waiting is not worth a change */
static const double GAIN = 1.05;        /* less gain is noise */

void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max)
{
    *tuner = (struct stk_tuner){
        .workers = workers, .workers_max = workers_max, .best = workers, .step = 1
    };
}

static void settle(struct stk_tuner *tuner, uint32_t workers)
{
    tuner->best = tuner->workers = workers;
    tuner->state = STK_TUNER_SETTLED;
}

static bool has_room(const struct stk_tuner *tuner)
{
    return tuner->step > 0 ? tuner->best < tuner->workers_max : tuner->best > 1;
}

static void begin_trial(struct stk_tuner *tuner, double rate)
{
    if (!has_room(tuner))
        tuner->step = -tuner->step;
    if (!has_room(tuner)) {
        tuner->rest_ns = REST_NS;
        return;
    }
    tuner->best_rate = rate;
    tuner->trial = tuner->workers = tuner->best + (uint32_t)tuner->step;
    tuner->state = STK_TUNER_TRYING;
}

static void fail_trial(struct stk_tuner *tuner)
{
    settle(tuner, tuner->best);
    tuner->step = -tuner->step;
    tuner->failures++;
    if (tuner->failures < 2)
        return;
    const uint32_t rests = tuner->failures / 2 - 1;
    tuner->rest_ns = REST_NS << (rests < REST_DOUBLINGS ? rests : REST_DOUBLINGS);
}

static void judge(struct stk_tuner *tuner, double rate, double stall)
{
    switch (tuner->state) {
    case STK_TUNER_SETTLED:
        if (stall > STALL_SHARE)
            begin_trial(tuner, rate);
        break;
    case STK_TUNER_TRYING:
        if (rate <= tuner->best_rate * GAIN) {
            fail_trial(tuner);
            break;
        }
        tuner->trial_rate = rate;
        tuner->workers = tuner->best;
        tuner->state = STK_TUNER_CHECKING;
        break;
    case STK_TUNER_CHECKING:
        if (tuner->trial_rate <= rate * GAIN) {
            fail_trial(tuner);
            break;
        }
        settle(tuner, tuner->trial);
        tuner->failures = 0;
        break;
    }
}

uint32_t stk_tuner_step(struct stk_tuner *tuner, uint64_t now_ns, uint64_t batches,
                        uint64_t stall_ns)
{
    const struct stk_look now = { now_ns, batches, stall_ns };
    struct stk_look passed;
    if (stk_watch_step(&tuner->watch, &now, AWAY_NS, &passed) != STK_WATCHED_WORK)
        return tuner->workers;
    if (tuner->rest_ns > 0) {
        tuner->rest_ns -= passed.ns < tuner->rest_ns ? passed.ns : tuner->rest_ns;
        return tuner->workers;
    }
    struct stk_look *window = &tuner->window;
    window->ns += passed.ns;
    window->batches += passed.batches;
    window->stall_ns += passed.stall_ns;
    if (window->ns < WINDOW_NS || window->batches < WINDOW_BATCHES)
        return tuner->workers;
    judge(tuner, (double)window->batches * 1e9 / (double)window->ns,
          (double)window->stall_ns / (double)window->ns);
    *window = (struct stk_look){ 0 };
    return tuner->workers;
}
