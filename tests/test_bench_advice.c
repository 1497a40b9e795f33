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

/* What the library guesses about more workers is left out where a sweep has tried them. */
Test(bench_advice, a_sweep_knows_better_than_a_guess)
{
    struct bench_cell cells[] = { cell_of(0, 100, 1), cell_of(1, 50, 2) };
    struct bench_arguments arguments = { .shuffle = true };
    struct bench_advice advice;
    for (size_t index = 0; index < 2; index++)
        strcpy(cells[index].verdict, "convert-bound (100 %); more workers may help");
    bench_advice_write(&advice, cells, 1, &arguments);
    cr_assert(strstr(advice.verdict, "; convert-bound (100 %); more workers may help") != NULL);
    bench_advice_write(&advice, cells, 2, &arguments);
    cr_assert(strstr(advice.verdict, "more workers") == NULL, "%s", advice.verdict);
    cr_assert(strstr(advice.verdict,
                     "; convert-bound (100 %); no other number of workers was more than 3 % "
                     "faster") != NULL,
              "%s", advice.verdict);
    cells[1].samples_per_s = NAN; /* what failed has shown nothing */
    bench_advice_write(&advice, cells, 2, &arguments);
    cr_assert(strstr(advice.verdict, "more workers may help") != NULL);
    stk_test_check_leaks();
}

Test(bench_advice, the_line_to_paste_holds_all_that_was_measured_with)
{
    struct bench_cell cell = cell_of(1, 100, 3);
    struct bench_arguments arguments = {
        .seed = 7,
        .reader = &stoker_reader_pread,
        .caches = { .values = { STOKER_CACHE_NONE, STOKER_CACHE_DECODED }, .count = 2 }
    };
    struct bench_advice advice;
    strcpy(cell.cache, "decoded");
    bench_advice_write(&advice, &cell, 1, &arguments);
    cr_assert(strstr(advice.options, ", .seed = 7,") != NULL, "%s", advice.options);
    cr_assert(strstr(advice.options, ", .reader = &stoker_reader_pread,") != NULL);
    cr_assert(strstr(advice.options, ", .cache = STOKER_CACHE_DECODED,") != NULL);
    cr_assert(strstr(advice.verdict, "1 worker, ") != NULL, "%s", advice.verdict);
    arguments.caches = (struct bench_list){ .values = { STOKER_CACHE_AUTO }, .count = 1 };
    bench_advice_write(&advice, &cell, 1, &arguments);
    cr_assert(strstr(advice.options, ".cache") == NULL, "auto is the default");
    stk_test_check_leaks();
}
