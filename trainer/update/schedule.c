/* schedule.c - see schedule.h.
 *
 *   rate ─┐                  step            rate ┐╲             cosine
 *         └────┐                                  │ ╲___
 *              └────                              └──────
 *   rate │   ╱╲              one cycle       rate │  ┌────       warm-up, then the others from
 *        │ ╱    ╲____                             │╱             there on
 */
#include "trainer/update/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* Half a cosine from one value to another; share 0..1. */
static double anneal(double first, double last, double share)
{
    return last + (first - last) / 2 * (1 + cos(pi * share));
}

/* torch.optim.lr_scheduler.OneCycleLR, two phases, anneal_strategy "cos", final_div_factor 1e4
 * (Smith, Topin, "Super-convergence", 2017). The last update has the lowest rate. */
static double one_cycle(const struct stk_schedule *s, double updates)
{
    const double initial = s->learning_rate / s->start;
    const double total = (double)s->total_updates;
    const double peak_at = s->rise * total - 1;
    if (updates >= total - 1)
        return initial / 1e4;
    if (updates < peak_at)
        return anneal(initial, s->learning_rate, updates / peak_at);
    return anneal(s->learning_rate, initial / 1e4, (updates - peak_at) / (total - 1 - peak_at));
}

static double cosine(const struct stk_schedule *s, double updates)
{
    const double length =
        (double)(s->total_updates > s->warmup_updates ? s->total_updates - s->warmup_updates : 1);
    const double last = s->learning_rate * s->final_fraction;
    return updates >= length ? last : anneal(s->learning_rate, last, updates / length);
}

double stk_schedule_rate(const struct stk_schedule *schedule, uint64_t updates)
{
    if (schedule->kind == STK_SCHEDULE_ONE_CYCLE)
        return one_cycle(schedule, (double)updates);
    if (updates < schedule->warmup_updates)
        return schedule->learning_rate * (double)(updates + 1) /
               (double)(schedule->warmup_updates + 1);
    updates -= schedule->warmup_updates;
    if (schedule->kind == STK_SCHEDULE_STEP) {
        const uint64_t steps = updates / schedule->schedule_steps; /* complete steps */
        return schedule->learning_rate * pow(schedule->gamma, (double)steps);
    }
    if (schedule->kind == STK_SCHEDULE_COSINE)
        return cosine(schedule, (double)updates);
    return schedule->learning_rate;
}
