/* test_bench_advice.c - which cell is recommended, and how it is written down. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "bench/advice.h"
#include "leaks.h"

static struct bench_cell cell_of(int32_t workers, double rate, double cpu)
{
    struct bench_cell cell = { .workers = workers,
                               .batch_size = 64,
                               .samples_per_s = rate,
                               .cpu_s_per_million = cpu,
                               .ceiling_share = NAN,
                               .pin_memory = "on",
                               .dtype = "float32" };
    return cell;
}

Test(bench_advice, the_fastest_wins_unless_as_good_is_cheaper)
{
    struct bench_cell cells[] = { cell_of(0, 50, 1), cell_of(1, 98, 2), cell_of(2, 100, 3) };
    cr_assert_eq(bench_advice_choose(cells, 3)->workers, 1, "2 %% slower for a third less");
    cells[1].samples_per_s = 96;
    cr_assert_eq(bench_advice_choose(cells, 3)->workers, 2);
    stk_test_check_leaks();
}

Test(bench_advice, cells_that_failed_are_not_recommended)
{
    struct bench_cell cells[] = { cell_of(0, NAN, NAN), cell_of(1, NAN, NAN) };
    struct bench_arguments arguments = { .shuffle = true };
    struct bench_advice advice;
    cr_assert_null(bench_advice_choose(cells, 2));
    bench_advice_write(&advice, cells, 2, &arguments);
    cr_assert_not(advice.found);
    cr_assert(isnan(advice.samples_per_s));
    stk_test_check_leaks();
}

Test(bench_advice, the_line_to_paste)
{
    struct bench_cell cell = cell_of(2, 100, 3);
    struct bench_arguments arguments = {
        .shuffle = true, .mean = { 0.5f, 0 }, .std = { 2, 1 }, .mean_count = 2, .std_count = 2
    };
    struct bench_advice advice;
    cell.automatic = true;
    bench_advice_write(&advice, &cell, 1, &arguments);
    cr_assert_str_eq(advice.options,
                     "stoker_loader_options options = { .struct_size = "
                     "sizeof(stoker_loader_options), .timeout_ms = -1, .non_blocking = true, "
                     ".batch_size = 64, .num_workers = STOKER_WORKERS_AUTO, .shuffle = true, "
                     ".pin_memory = STOKER_ON, .dtype = STOKER_FLOAT32, .mean = (const float[]){ "
                     "0.500000f, 0.00000f }, .std = (const float[]){ 2.00000f, 1.00000f }, "
                     ".mean_count = 2 };");
    stk_test_check_leaks();
}
