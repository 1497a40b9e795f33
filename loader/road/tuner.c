/* tuner.c - see tuner.h. */
#include "loader/road/tuner.h"

#define WINDOW_NS UINT64_C(50000000)
#define REST_NS   UINT64_C(2000000000) /* after both directions failed; doubles up to 32 s */

#define AWAY_NS UINT64_C(20000000)

enum { WINDOW_BATCHES = 16 };

static const double STALL_SHARE = 0.05; /* less waiting is not worth a change */
static const double GAIN = 1.05;        /* less gain is noise */

void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max)
{
    *tuner = (struct stk_tuner){
        .workers = workers, .workers_max = workers_max, .best = workers, .step = 1
    };
}

static void open_window(struct stk_tuner *tuner, uint64_t now_ns, uint64_t batches,
                        uint64_t stall_ns)
{
    tuner->window_ns = now_ns;
    tuner->window_batches = batches;
    tuner->window_stall_ns = stall_ns;
}

/* Move one step if there is room on that side; true if it did. */
static bool try_step(struct stk_tuner *tuner)
{
    if (tuner->step > 0 ? tuner->workers >= tuner->workers_max : tuner->workers <= 1)
        return false;
    tuner->workers += (uint32_t)tuner->step;
    tuner->trying = true;
    return true;
}

static void judge_try(struct stk_tuner *tuner, double rate, uint64_t now_ns)
{
    tuner->trying = false;
    if (rate > tuner->best_rate * GAIN) { /* go on in this direction */
        tuner->best = tuner->workers;
        tuner->best_rate = rate;
        tuner->failures = 0;
        return;
    }
    tuner->workers = tuner->best;
    tuner->step = -tuner->step;
    tuner->failures++;
    if (tuner->failures >= 2) {
        uint32_t doublings = tuner->failures / 2 - 1 < 4 ? tuner->failures / 2 - 1 : 4;
        tuner->rest_until_ns = now_ns + (REST_NS << doublings);
    }
}

uint32_t stk_tuner_step(struct stk_tuner *tuner, uint64_t now_ns, uint64_t batches,
                        uint64_t stall_ns)
{
    /* A consumer that was away between two looks (an evaluation, a checkpoint) found the ring full
     * on its return: what it did meanwhile tells nothing about the workers. Nor is it rest: where
     * work comes in short stretches, most of it would go into trials. */
    const uint64_t gap_ns = tuner->looked_ns == 0 ? 0 : now_ns - tuner->looked_ns;
    const bool away = gap_ns > AWAY_NS && stall_ns - tuner->looked_stall_ns < gap_ns / 20;
    tuner->looked_ns = now_ns;
    tuner->looked_stall_ns = stall_ns;
    if (away && tuner->rest_until_ns > 0)
        tuner->rest_until_ns += gap_ns;
    if (tuner->window_ns == 0 || now_ns < tuner->rest_until_ns) {
        open_window(tuner, now_ns, batches, stall_ns);
        return tuner->workers;
    }
    if (away) {
        tuner->trying = false;
        tuner->workers = tuner->best;
        open_window(tuner, now_ns, batches, stall_ns);
        return tuner->workers;
    }
    const uint64_t span_ns = now_ns - tuner->window_ns;
    const uint64_t made = batches - tuner->window_batches;
    if (span_ns < WINDOW_NS || made < WINDOW_BATCHES)
        return tuner->workers;

    const double rate = (double)made * 1e9 / (double)span_ns;
    const double stall = (double)(stall_ns - tuner->window_stall_ns) / (double)span_ns;
    if (tuner->trying) {
        judge_try(tuner, rate, now_ns);
    } else if (stall > STALL_SHARE) {
        tuner->best_rate = rate;
        if (!try_step(tuner)) {
            tuner->step = -tuner->step;
            if (!try_step(tuner))
                tuner->rest_until_ns = now_ns + REST_NS;
        }
    }
    open_window(tuner, now_ns, batches, stall_ns);
    return tuner->workers;
}
