/* test_advice.c - which cell is recommended, and how it is written down. */
#include <math.h>

#include "bench/loaderbench/advice.h"
#include "support/leaks.h"

static struct bench_cell cell_of(int32_t workers, double rate, double cpu)
{
    struct bench_cell cell = { .workers = workers,
                               .batch_size = 64,
                               .samples_per_s = rate,
                               .cpu_s_per_million = cpu,
                               .ceiling_share = NAN,
                               .pin_memory = "on",
                               .dtype = "float32",
                               .cache = "decoded" };
    return cell;
}

CleanTest(bench_advice, the_fastest_wins_unless_as_good_is_cheaper)
{
    struct bench_cell cells[] = { cell_of(0, 50, 1), cell_of(1, 98, 2), cell_of(2, 100, 3) };
    cr_assert_eq(bench_advice_choose(cells, 3)->workers, 1, "2 %% slower for a third less");
    cells[1].samples_per_s = 96;
    cr_assert_eq(bench_advice_choose(cells, 3)->workers, 2);
}

CleanTest(bench_advice, cells_that_failed_are_not_recommended)
{
    struct bench_cell cells[] = { cell_of(0, NAN, NAN), cell_of(1, NAN, NAN) };
    struct bench_arguments arguments = { .shuffle = true };
    struct bench_advice advice;
    cr_assert_null(bench_advice_choose(cells, 2));
    bench_advice_write(&advice, cells, 2, &arguments);
    cr_assert_not(advice.found);
    cr_assert(isnan(advice.samples_per_s));
}

CleanTest(bench_advice, the_line_to_paste)
{
    struct bench_cell cell = cell_of(2, 100, 3);
    struct bench_arguments arguments = { .shuffle = true,
                                         .mean = { { 0.5f, 0 }, 2 },
                                         .std = { { 2, 1 }, 2 } };
    struct bench_advice advice;
    cell.automatic = true;
    bench_advice_write(&advice, &cell, 1, &arguments);
    cr_assert_str_eq(advice.options, "stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;\n"
                                     "options.batch_size = 64;\n"
                                     "options.num_workers = STOKER_WORKERS_AUTO; /* it chose 2 */\n"
                                     "options.pin_memory = STOKER_SWITCH_ON;\n"
                                     "options.cache = STOKER_CACHE_DECODED; /* what AUTO chose */\n"
                                     "options.shuffle = true;\n"
                                     "options.dtype = STOKER_DTYPE_FLOAT32;\n"
                                     "options.mean = (const float[]){ 0.500000f, 0.00000f };\n"
                                     "options.std = (const float[]){ 2.00000f, 1.00000f };\n"
                                     "options.mean_count = 2;");
}

/* What the library guesses about more workers is left out where a sweep has tried them. */
CleanTest(bench_advice, a_sweep_knows_better_than_a_guess)
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
}

CleanTest(bench_advice, the_line_to_paste_holds_all_that_was_measured_with)
{
    struct bench_cell cell = cell_of(1, 100, 3);
    struct bench_arguments arguments = {
        .seed = 7,
        .reader = stoker_reader_pread(),
        .caches = { .values = { STOKER_CACHE_NONE, STOKER_CACHE_DECODED }, .count = 2 }
    };
    struct bench_advice advice;
    strcpy(cell.cache, "decoded");
    bench_advice_write(&advice, &cell, 1, &arguments);
    cr_assert(strstr(advice.options, "\noptions.seed = 7;\n") != NULL, "%s", advice.options);
    cr_assert(strstr(advice.options, "\noptions.reader = stoker_reader_pread();\n") != NULL);
    cr_assert(strstr(advice.options, "\noptions.cache = STOKER_CACHE_DECODED;\n") != NULL);
    cr_assert(strstr(advice.verdict, "1 worker, ") != NULL, "%s", advice.verdict);
    arguments.caches = (struct cli_list){ .values = { STOKER_CACHE_AUTO }, .count = 1 };
    bench_advice_write(&advice, &cell, 1, &arguments);
    cr_assert(strstr(advice.options, "options.cache = STOKER_CACHE_DECODED; /* what AUTO") != NULL,
              "the cache that made the figures has a name: %s", advice.options);
}

/* With a cache the rate of later epochs says nothing about the first one. */
CleanTest(bench_advice, both_kinds_of_epochs_have_their_limit)
{
    struct bench_cell cells[] = { cell_of(1, 100, 1), cell_of(2, 100, 2) };
    struct bench_arguments arguments = { .shuffle = true };
    struct bench_advice advice;
    for (size_t index = 0; index < 2; index++) {
        strcpy(cells[index].verdict, "convert-bound; guess");
        cells[index].ceiling_share = 0.9;
        strcpy(cells[index].ceiling, "gather");
        cells[index].first = (struct bench_first_epoch){ .separate = true,
                                                         .samples_per_s = (double)(index + 1) * 10,
                                                         .verdict = "decode-bound; guess",
                                                         .ceiling = "parts in turn",
                                                         .ceiling_share = 0.8 };
    }
    bench_advice_write(&advice, cells, 2, &arguments);
    cr_assert_eq(advice.first_epoch_samples_per_s, 10);
    cr_assert_str_eq(
        advice.verdict,
        "With 1 worker, batch 64, float32, pin_memory on: first epoch 10.0 samples/s, 80.0 % "
        "of the ceiling (parts in turn); decode-bound. Later epochs, from the decoded "
        "cache: 100 samples/s, 90.0 % of the ceiling (gather); convert-bound; no "
        "other number of workers was more than 3 % faster. The first epoch is fastest "
        "with 2 workers, batch 64, float32, pin_memory on: 20.0 samples/s");
}
