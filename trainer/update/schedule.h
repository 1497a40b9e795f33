/* schedule.h - the learning rate, as a pure function of the number of updates made before. */
#ifndef STK_TRAINER_SCHEDULE_H
#define STK_TRAINER_SCHEDULE_H

#include <stdint.h>

enum stk_schedule_kind {
    STK_SCHEDULE_CONSTANT,
    STK_SCHEDULE_STEP,
    STK_SCHEDULE_COSINE,
    STK_SCHEDULE_ONE_CYCLE
};

/* Resolved: no zeros that mean "default". */
struct stk_schedule {
    enum stk_schedule_kind kind;
    double learning_rate;    /* the base; ONE_CYCLE: the peak */
    uint64_t total_updates;  /* COSINE, ONE_CYCLE: >= 1 */
    uint64_t warmup_updates; /* not ONE_CYCLE */
    uint64_t schedule_steps; /* STEP: >= 1 */
    double gamma;            /* STEP */
    double rise, start;      /* ONE_CYCLE: pct_start and div_factor of PyTorch */
    double final_fraction;   /* COSINE */
};

/* Of the update that follows `updates` others. */
double stk_schedule_rate(const struct stk_schedule *schedule, uint64_t updates);

#endif
