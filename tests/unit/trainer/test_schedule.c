/* test_schedule.c - learning rates against torch.optim.lr_scheduler's numbers. */
#include "support/leaks.h"
#include "trainer/update/schedule.h"

#include <math.h>
#include <stddef.h>

#include "golden/trainer/schedules.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct row {
    const char *name;
    struct stk_schedule schedule;
    const double *golden;
    size_t count;
} rows[] = {
    { "step",
      { .kind = STK_SCHEDULE_STEP, .learning_rate = 0.5, .schedule_steps = 7, .gamma = 0.7 },
      golden_step,
      COUNT(golden_step) },
    { "cosine",
      { .kind = STK_SCHEDULE_COSINE,
        .learning_rate = 0.5,
        .total_updates = 29,
        .final_fraction = 0.1 },
      golden_cosine,
      COUNT(golden_cosine) },
    { "one cycle",
      { .kind = STK_SCHEDULE_ONE_CYCLE,
        .learning_rate = 0.5,
        .total_updates = 40,
        .rise = 0.3,
        .start = 25 },
      golden_one_cycle,
      COUNT(golden_one_cycle) },
    { "one cycle, odd",
      { .kind = STK_SCHEDULE_ONE_CYCLE,
        .learning_rate = 0.5,
        .total_updates = 17,
        .rise = 0.2,
        .start = 10 },
      golden_one_cycle_odd,
      COUNT(golden_one_cycle_odd) },
};

CleanTest(trainer_schedule, rates_are_those_of_pytorch)
{
    for (size_t r = 0; r < COUNT(rows); r++)
        for (size_t i = 0; i < rows[r].count; i++) {
            const double rate = stk_schedule_rate(&rows[r].schedule, i);
            cr_assert_lt(fabs(rate - rows[r].golden[i]), 1e-12, "%s, update %u: %.17g, not %.17g",
                         rows[r].name, (unsigned)i, rate, rows[r].golden[i]);
        }
}

CleanTest(trainer_schedule, warm_up_rises_in_a_line_and_then_the_rest_follows)
{
    struct stk_schedule s = { .kind = STK_SCHEDULE_CONSTANT,
                              .learning_rate = 0.5,
                              .warmup_updates = 4 };
    for (uint64_t i = 0; i < 10; i++)
        cr_assert_float_eq(stk_schedule_rate(&s, i), i < 4 ? 0.1 * (double)(i + 1) : 0.5, 1e-15);

    s.kind = STK_SCHEDULE_STEP;
    s.schedule_steps = 3;
    s.gamma = 0.5;
    cr_assert_float_eq(stk_schedule_rate(&s, 3), 0.4, 1e-15);
    cr_assert_float_eq(stk_schedule_rate(&s, 6), 0.5, 1e-15);
    cr_assert_float_eq(stk_schedule_rate(&s, 7), 0.25, 1e-15);

    s.kind = STK_SCHEDULE_COSINE;
    s.total_updates = 14;
    cr_assert_float_eq(stk_schedule_rate(&s, 4), 0.5, 1e-15);
    cr_assert_float_eq(stk_schedule_rate(&s, 9), 0.25, 1e-15);
    cr_assert_float_eq(stk_schedule_rate(&s, 14), 0, 1e-15);
}

/* Whatever is asked: a number between 0 and the peak, past the end as at the end. */
CleanTest(trainer_schedule, every_length_and_rise_gives_a_rate)
{
    for (int kind = STK_SCHEDULE_CONSTANT; kind <= STK_SCHEDULE_ONE_CYCLE; kind++)
        for (uint64_t total = 1; total <= 40; total++)
            for (int rise = 1; rise < 40; rise++) {
                const struct stk_schedule s = { .kind = (enum stk_schedule_kind)kind,
                                                .learning_rate = 1,
                                                .total_updates = total,
                                                .warmup_updates =
                                                    kind == STK_SCHEDULE_ONE_CYCLE ? 0 : total / 3,
                                                .schedule_steps = total,
                                                .gamma = 0.5,
                                                .rise = rise / 40.0,
                                                .start = 25 };
                for (uint64_t i = 0; i < total + 5; i++) {
                    const double rate = stk_schedule_rate(&s, i);
                    cr_assert(rate >= 0 && rate <= 1, "kind %d, %u of %u, rise %d/40: %g", kind,
                              (unsigned)i, (unsigned)total, rise, rate);
                }
            }
}
