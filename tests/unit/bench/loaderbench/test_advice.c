/* test_advice.c - which cell is recommended, and how it is written down. */
#include <math.h>

#include "bench/loaderbench/advice.h"
#include "support/leaks.h"

static struct bench_cell cell_of(int32_t workers, double rate, double half_interval)
{
    struct bench_cell cell = { .workers = workers,
                               .batch_size = 64,
                               .samples_per_s = rate,
                               .samples_per_s_low = rate - half_interval,
                               .samples_per_s_high = rate + half_interval,
                               .half_spread = 2 * half_interval / rate,
                               .limit = "convert",
                               .ceiling_share = NAN,
                               .pin_memory = "on",
                               .dtype = "float32",
                               .cache = "decoded" };
    return cell;
}

static const struct bench_circumstances idle = { .others_cpus = 0.1, .cpus = 2, .pin_ms = NAN };

/* The rules of advice.h, a row each: the cells' workers (-1 = auto, which chose 2), rates and half
 * intervals, and the index of the one that is recommended, with and without a step. */
CleanTest(bench_advice, auto_unless_another_number_is_measurably_faster)
{
    static const struct {
        const char *name;
        struct {
            int32_t workers;
            double rate, half;
        } cells[4];
        int idle_step, real_step;
    } rows[] = {
        { "alike", { { 0, 100, 5 }, { 1, 99, 5 }, { 2, 98, 5 }, { -1, 97, 5 } }, 3, 3 },
        { "0 looks cheap", { { 0, 200, 5 }, { 1, 99, 5 }, { 2, 98, 5 }, { -1, 97, 5 } }, 3, 0 },
        { "auto is slower", { { 0, 50, 5 }, { 1, 99, 5 }, { 2, 100, 5 }, { -1, 80, 5 } }, 1, 1 },
        { "1 is slower", { { 0, 50, 5 }, { 1, 80, 5 }, { 2, 100, 5 }, { -1, 80, 5 } }, 2, 2 },
        { "noise", { { 0, 50, 30 }, { 1, 80, 30 }, { 2, 100, 30 }, { -1, 60, 30 } }, 3, 3 },
        { "only 0", { { 0, 50, 5 }, { 1, NAN, 5 }, { 2, NAN, 5 }, { -1, NAN, 5 } }, 0, 0 },
        { "only 2", { { 0, NAN, 5 }, { 1, NAN, 5 }, { 2, 80, 5 }, { -1, NAN, 5 } }, 2, 2 },
    };
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct bench_cell cells[4];
        for (int i = 0; i < 4; i++) {
            const int32_t workers = rows[row].cells[i].workers;
            cells[i] = cell_of(workers < 0 ? 2 : workers, rows[row].cells[i].rate,
                               rows[row].cells[i].half);
            cells[i].automatic = workers < 0;
        }
        struct bench_arguments arguments = { .step_us = 0 };
        cr_assert_eq(bench_advice_choose(cells, 4, &arguments) - cells, rows[row].idle_step, "%s",
                     rows[row].name);
        arguments.step_us = 100;
        cr_assert_eq(bench_advice_choose(cells, 4, &arguments) - cells, rows[row].real_step, "%s",
                     rows[row].name);
    }
}

CleanTest(bench_advice, cells_that_failed_are_not_recommended)
{
    struct bench_cell cells[] = { cell_of(0, NAN, 1), cell_of(1, NAN, 1) };
    struct bench_arguments arguments = { .shuffle = true };
    struct bench_advice advice;
    cr_assert_null(bench_advice_choose(cells, 2, &arguments));
    bench_advice_write(&advice, cells, 2, &arguments, &idle);
    cr_assert_null(advice.best);
    cr_assert_str_eq(advice.verdict, "no cell could be measured");
}

/* Either other programs or the spread of the recommended cell make the figures unusable. */
CleanTest(bench_advice, a_busy_machine_has_no_verdict)
{
    static const struct {
        double half, others;
        const char *says;
    } rows[] = { { 9, 0.4, NULL },
                 { 9, 0.6, "Other programs used 0.6 of 2 CPUs meanwhile." },
                 { 11, 0.4, "Half of the repeats of one cell differ by 22 %." },
                 { 9, NAN, NULL } };
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        const struct bench_cell cell = cell_of(1, 100, rows[row].half);
        const struct bench_arguments arguments = { .shuffle = true };
        const struct bench_circumstances now = { rows[row].others, 2, NAN };
        struct bench_advice advice;
        bench_advice_write(&advice, &cell, 1, &arguments, &now);
        cr_assert_eq(advice.busy, rows[row].says != NULL, "%zu", row);
        const char *words =
            rows[row].says != NULL ? rows[row].says : "num_workers 1: 100 samples/s";
        cr_assert_not_null(strstr(advice.verdict, words), "%s", advice.verdict);
        cr_assert_eq(strstr(advice.options, "STOKER_WORKERS_AUTO") != NULL, advice.busy);
    }
}

/* A batch size is the user's: each has its verdict, and the first one's options are pasted. */
CleanTest(bench_advice, the_verdict_of_each_batch_size)
{
    struct bench_cell cells[] = { cell_of(1, 100, 1), cell_of(2, 101, 2), cell_of(0, 50, 1),
                                  cell_of(1, 300, 1) };
    const struct bench_arguments arguments = { .shuffle = true,
                                               .device = STOKER_DEVICE_CPU,
                                               .dataset = "synth:digits" };
    const struct bench_circumstances now = { 0, 2, 1.25 };
    struct bench_advice advice;
    cells[0].ceiling_share = 1.04; /* by noise */
    strcpy(cells[0].ceiling, "gather");
    cells[3].batch_size = 512;
    bench_advice_write(&advice, cells, 4, &arguments, &now);
    cr_assert_eq(advice.best, &cells[0]);
    cr_assert_str_eq(
        advice.verdict,
        "Batch 64, float32: num_workers 1: 100 samples/s, ~100 % of the ceiling (gather), limited "
        "by convert. Not measurably different: 2. Slower: 0 (0.50 times). Batch 512, float32: "
        "num_workers 1: 300 samples/s, limited by convert. The training step was taken to last 0 "
        "us: --step-us N gives its length. Page-locking cannot help without a GPU; it would add "
        "1.2 ms to the start.");
    cr_assert_str_eq(advice.python, "train = stoker.DataLoader(\"synth:digits\", batch_size=64, "
                                    "shuffle=True, num_workers=1, dtype=\"float32\")");
}

CleanTest(bench_advice, the_line_to_paste)
{
    struct bench_cell cell = cell_of(2, 100, 3);
    struct bench_arguments arguments = { .shuffle = true,
                                         .device = STOKER_DEVICE_CUDA_HOST,
                                         .mean = { { 0.5f, 0 }, 2 },
                                         .std = { { 2, 1 }, 2 } };
    struct bench_advice advice;
    cell.automatic = true;
    bench_advice_write(&advice, &cell, 1, &arguments, &idle);
    cr_assert_str_eq(advice.options, "stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;\n"
                                     "options.batch_size = 64;\n"
                                     "options.num_workers = STOKER_WORKERS_AUTO; /* it chose 2 */\n"
                                     "options.device = STOKER_DEVICE_CUDA_HOST;\n"
                                     "options.pin_memory = STOKER_SWITCH_ON;\n"
                                     "options.cache = STOKER_CACHE_DECODED; /* what AUTO chose */\n"
                                     "options.shuffle = true;\n"
                                     "options.dtype = STOKER_DTYPE_FLOAT32;\n"
                                     "options.mean = (const float[]){ 0.500000f, 0.00000f };\n"
                                     "options.std = (const float[]){ 2.00000f, 1.00000f };\n"
                                     "options.mean_count = 2;");
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
    bench_advice_write(&advice, &cell, 1, &arguments, &idle);
    cr_assert(strstr(advice.options, "\noptions.seed = 7;\n") != NULL, "%s", advice.options);
    cr_assert(strstr(advice.options, "\noptions.reader = stoker_reader_pread();\n") != NULL);
    cr_assert(strstr(advice.options, "\noptions.cache = STOKER_CACHE_DECODED;\n") != NULL);
    arguments.caches = (struct cli_list){ .values = { STOKER_CACHE_AUTO }, .count = 1 };
    bench_advice_write(&advice, &cell, 1, &arguments, &idle);
    cr_assert(strstr(advice.options, "options.cache = STOKER_CACHE_DECODED; /* what AUTO") != NULL,
              "the cache that made the figures has a name: %s", advice.options);
}

/* With a cache the rate of later epochs says nothing about the first one. */
CleanTest(bench_advice, both_kinds_of_epochs_have_their_limit)
{
    struct bench_cell cell = cell_of(1, 100, 1);
    const struct bench_arguments arguments = { .step_us = 1 };
    struct bench_advice advice;
    cell.ceiling_share = 0.9;
    strcpy(cell.ceiling, "gather");
    cell.first = (struct bench_first_epoch){ .separate = true,
                                             .samples_per_s = 10,
                                             .limit = "decode",
                                             .ceiling = "parts in turn",
                                             .ceiling_share = 0.8 };
    bench_advice_write(&advice, &cell, 1, &arguments, &idle);
    cr_assert_str_eq(advice.verdict,
                     "Batch 64, float32: num_workers 1: first epoch 10.0 samples/s, 80 % of the "
                     "ceiling (parts in turn), limited by decode; later epochs, from the decoded "
                     "cache, 100 samples/s, 90 % of the ceiling (gather), limited by convert.");
}

/* On a GPU pinned and pageable cells of the same workers are compared. */
CleanTest(bench_advice, pinning_is_judged_by_its_intervals)
{
    struct bench_cell cells[] = { cell_of(1, 100, 1), cell_of(1, 50, 1) };
    const struct bench_arguments arguments = { .step_us = 1, .device = STOKER_DEVICE_CUDA };
    struct bench_advice advice;
    strcpy(cells[0].pin_memory, "off");
    strcpy(cells[1].pin_memory, "on");
    bench_advice_write(&advice, cells, 2, &arguments, &idle);
    cr_assert_not_null(strstr(advice.verdict, "pin_memory off is 2.00 times as fast as on."), "%s",
                       advice.verdict);
    cells[1] = cell_of(1, 99.5, 1);
    bench_advice_write(&advice, cells, 2, &arguments, &idle);
    cr_assert_not_null(
        strstr(advice.verdict, "pin_memory off and on are not measurably different."), "%s",
        advice.verdict);
}

/* Caches that were swept are not compared as if they were workers; a failed cell has none. */
CleanTest(bench_advice, each_cache_has_its_verdict)
{
    struct bench_cell cells[] = { cell_of(1, 100, 1), cell_of(2, NAN, 1), cell_of(1, 10, 1) };
    const struct bench_arguments arguments = { .step_us = 1, .device = STOKER_DEVICE_CPU };
    struct bench_advice advice;
    strcpy(cells[1].cache, "auto");
    strcpy(cells[2].cache, "none");
    bench_advice_write(&advice, cells, 3, &arguments, &idle);
    cr_assert_str_eq(advice.verdict,
                     "Batch 64, float32: num_workers 1: 100 samples/s, limited by convert. Batch "
                     "64, float32: num_workers 1: 10.0 samples/s, limited by convert.");
}

CleanTest(bench_advice, python_gets_the_transforms_too)
{
    const struct bench_cell cell = cell_of(1, 100, 1);
    struct bench_arguments arguments = { .device = STOKER_DEVICE_CPU, .dataset = "folder:d" };
    struct bench_advice advice;
    arguments.transform = (stoker_transform)STOKER_TRANSFORM_INIT;
    arguments.transform.random_resized_crop = (stoker_size){ 224, 200 };
    arguments.transform.flip = true;
    bench_advice_write(&advice, &cell, 1, &arguments, &idle);
    cr_assert_str_eq(advice.python,
                     "train = stoker.DataLoader(\"folder:d\", batch_size=64, num_workers=1, "
                     "dtype=\"float32\", transform=stoker.Transform(random_resized_crop=(224, "
                     "200), flip=True))");
}
