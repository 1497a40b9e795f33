/* sweep.c - measures every combination of the lists.
 *
 * Cells with the same type and batch size form a group, whose question is: what do more workers,
 * pinning and copying ahead change? All cells of a group are begun, then repeated in turn: on a
 * machine whose speed drifts, only what is measured close together can be compared.
 *
 *   begin a, begin b, ...  { repeat a, repeat b, ... } x repeats   end a, end b, ...   rows
 *
 * Ctrl-C ends the repeats; each cell with a complete one gets a row.
 */
#include "bench/loaderbench/sweep.h"
#include "bench/loaderbench/advice.h"
#include "bench/loaderbench/cell/together.h"
#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/statistics.h"
#include "loader/base/clock.h"
#include "loader/cli/interrupt.h"
#include "loader/cli/progress_line.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

enum {
    REPEATS_MIN = 3,
    GROUP_CELLS_MAX = 64,
    GROUP_THREADS_MAX = 64, /* asleep, but each has a stack and a ring */
    GROUP_BYTES_MAX = 512 << 20
};

/* ---- progress -------------------------------------------------------------------------- */

static const uint64_t PLAIN_NS = 3000000000U; /* between two lines that are no terminal's */

/* How far the sweep is, and how long the rest will take. */
struct progress {
    struct cli_progress_line line;
    bool quiet;
    uint64_t begin_ns, said_ns;
    uint64_t budget_ns; /* 0 = none: the repeats are counted */
    uint32_t total;
    uint32_t done;
};

/* Ranks repeat alike, so their repeats are counted. */
static void begin_progress(struct progress *progress, uint32_t total,
                           const struct bench_bench *bench)
{
    const struct bench_arguments *arguments = bench->arguments;
    *progress = (struct progress){ .line = cli_progress_line(arguments->quiet),
                                   .quiet = arguments->quiet,
                                   .begin_ns = stk_now_ns(),
                                   .total = total };
    if (!arguments->repeats_given && !bench_ranks_several(bench->ranks))
        progress->budget_ns = (uint64_t)(arguments->budget_s * 1e9);
}

static uint64_t seconds_left(const struct progress *progress)
{
    const uint64_t spent_ns = stk_now_ns() - progress->begin_ns;
    if (progress->budget_ns > spent_ns)
        return (progress->budget_ns - spent_ns + 999999999) / 1000000000;
    if (progress->budget_ns > 0 || progress->done == 0)
        return 0;
    return spent_ns / progress->done * (progress->total - progress->done) / 1000000000;
}

/* A line on the terminal, or one every few seconds, the first one at once. */
static void show_progress(struct progress *progress, const char *what)
{
    char line[200];
    const uint64_t now_ns = stk_now_ns();
    const uint64_t seconds = seconds_left(progress);
    if (progress->quiet ||
        (!progress->line.live && progress->said_ns > 0 && now_ns - progress->said_ns < PLAIN_NS))
        return;
    snprintf(line, sizeof(line), "[%" PRIu32 "/%" PRIu32 "] %" PRIu64 ":%02" PRIu64 " left, %.120s",
             progress->done + 1, progress->total, seconds / 60, seconds % 60, what);
    if (!progress->line.live)
        fprintf(stderr, "loaderbench: %s\n", line);
    progress->said_ns = now_ns;
    cli_progress_line_show(&progress->line, line);
}

static void advance_progress(struct progress *progress)
{
    progress->done++;
}

/* ---- cells and groups ------------------------------------------------------------------ */

/* The number of cells that are compared with each other. */
static uint64_t group_size(const struct bench_arguments *arguments)
{
    return (uint64_t)arguments->workers.count * arguments->converts.count *
           arguments->blockings.count * arguments->pins.count;
}

static uint64_t cell_count(const struct bench_arguments *arguments)
{
    return (uint64_t)arguments->caches.count * arguments->dtypes.count *
           arguments->batch_sizes.count * group_size(arguments);
}

static int32_t pick(const struct cli_list *list, uint64_t *index)
{
    int32_t value = list->values[*index % list->count];
    *index /= list->count;
    return value;
}

/* Cell number `index`; the last list varies fastest. */
static struct bench_choice choice_at(const struct bench_arguments *arguments, uint64_t index)
{
    struct bench_choice choice;
    choice.pin_memory = (stoker_switch)pick(&arguments->pins, &index);
    choice.non_blocking = pick(&arguments->blockings, &index) != 0;
    choice.convert = (stoker_switch)pick(&arguments->converts, &index);
    choice.workers = pick(&arguments->workers, &index);
    choice.batch_size = (uint32_t)pick(&arguments->batch_sizes, &index);
    choice.dtype = (stoker_dtype)pick(&arguments->dtypes, &index);
    choice.cache = (stoker_cache)pick(&arguments->caches, &index);
    choice.device = arguments->device;
    return choice;
}

/* A sweep while it runs: cells complete in any order, rows are printed in order. */
struct sweep {
    struct bench_bench *bench;
    struct bench_cell *cells;
    uint64_t count;
    uint64_t printed; /* cells before this one have their rows */
    struct bench_sheet *sheets;
    uint32_t sheet_count;
    struct progress progress;
    uint64_t group_end_ns; /* repeats of this group end, unless their number is given */
};

static void print_row(struct sweep *sweep, const struct bench_cell *cell)
{
    for (uint32_t index = 0; index < sweep->sheet_count; index++)
        sweep->sheets[index].form->cell(&sweep->sheets[index], cell);
}

/* Prints the rows up to the first incomplete cell; they are compared with each other. */
static void print_rows(struct sweep *sweep)
{
    double best = 0;
    cli_progress_line_wipe(&sweep->progress.line);
    for (uint64_t index = sweep->printed; index < sweep->count && sweep->cells[index].done; index++)
        if (sweep->cells[index].samples_per_s > best)
            best = sweep->cells[index].samples_per_s;
    for (uint32_t index = 0; index < sweep->sheet_count; index++)
        sweep->sheets[index].best_samples_per_s = best;
    for (; sweep->printed < sweep->count && sweep->cells[sweep->printed].done; sweep->printed++)
        print_row(sweep, &sweep->cells[sweep->printed]);
}

/* memcpy does not depend on the cell; it is measured once per round, under the same conditions as
 * the cells: on one thread, and on all CPUs. */
static int measure_memcpy(struct bench_bench *bench)
{
    const uint32_t most = bench->cpus < BENCH_THREADS_MAX ? bench->cpus : BENCH_THREADS_MAX;
    for (uint32_t threads = 1; threads <= most; threads = threads < most ? most : most + 1) {
        struct bench_work work = {
            .threads = threads, .batch_size = 1, .ring_rows = 1, .seconds = 0.01
        };
        struct bench_ceiling_row row = { .threads = threads, .dtype = "bytes" };
        double rate = NAN;
        snprintf(row.name, sizeof(row.name), "%s", bench_ceiling_name(BENCH_CEILING_MEMCPY));
        int rc = bench_together_ceiling(bench->ranks, BENCH_CEILING_MEMCPY, &work, &rate, NULL);
        if (rc == STOKER_OK)
            rc = bench_pool_add(&bench->pool, &row, 1, rate);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

/* Cells that are alive together. */
struct group {
    struct bench_run *runs[GROUP_CELLS_MAX];
    uint32_t count;
    uint64_t bytes;   /* what their loaders hold */
    uint64_t threads; /* what their loaders started */
};

static bool has_room(const struct group *group, const struct bench_choice *choice)
{
    const uint64_t threads = choice->workers > 0 ? (uint64_t)choice->workers : 0;
    return group->count < GROUP_CELLS_MAX && group->bytes < GROUP_BYTES_MAX &&
           group->threads + threads <= GROUP_THREADS_MAX;
}

/* "workers 2, batch 64, ...: 6.54 M samples/s" */
static void show_repeat(struct progress *progress, const struct bench_run *run)
{
    char name[BENCH_CHOICE_NAME_MAX], text[BENCH_CHOICE_NAME_MAX + 40], rate[16];
    bench_choice_name(bench_cell_choice(run), name);
    snprintf(text, sizeof(text), "%s samples/s: %s", bench_short_number(rate, bench_cell_rate(run)),
             name);
    show_progress(progress, text);
}

/* Another round like the last one would end too late. */
static bool is_over(const struct sweep *sweep, uint32_t rounds, uint64_t round_ns)
{
    return sweep->progress.budget_ns > 0 && rounds >= REPEATS_MIN &&
           stk_now_ns() + round_ns > sweep->group_end_ns;
}

/* Runs all repeats of a group, which completes its cells. Progress advances one step per cell. */
static void finish_group(struct sweep *sweep, struct group *group)
{
    struct bench_bench *bench = sweep->bench;
    const uint32_t repeats = bench->arguments->repeats;
    uint64_t round_ns = 0;
    for (uint32_t repeat = 0;
         repeat < repeats && !cli_interrupted() && !is_over(sweep, repeat, round_ns); repeat++) {
        const uint64_t begin_ns = stk_now_ns();
        for (uint32_t index = 0; index < group->count && !cli_interrupted(); index++) {
            bench_cell_repeat(group->runs[index]);
            show_repeat(&sweep->progress, group->runs[index]);
        }
        if (bench->arguments->ceilings && !cli_interrupted())
            (void)measure_memcpy(bench); /* a failure costs one row only */
        uint64_t done = (uint64_t)(repeat + 1) * group->count / repeats;
        uint64_t before = (uint64_t)repeat * group->count / repeats;
        for (; before < done; before++)
            advance_progress(&sweep->progress);
        round_ns = stk_now_ns() - begin_ns;
    }
    for (uint32_t index = 0; index < group->count; index++)
        bench_cell_end(group->runs[index]);
    *group = (struct group){ .count = 0 };
}

/* Begins one cell. If it fails because others of the group hold what it needs (locked memory, say),
 * it is tried again alone. */
static void join_group(struct sweep *sweep, struct group *group, const struct bench_choice *choice,
                       struct bench_cell *cell)
{
    struct bench_run *run = NULL;
    int rc = bench_cell_begin(&run, sweep->bench, choice, cell);
    if (rc != STOKER_OK && rc != BENCH_INTERRUPTED && group->count > 0) {
        finish_group(sweep, group);
        rc = bench_cell_begin(&run, sweep->bench, choice, cell);
    }
    cell->done = rc != STOKER_OK && rc != BENCH_INTERRUPTED; /* a row with the reason */
    if (rc != STOKER_OK) {
        advance_progress(&sweep->progress); /* its share of the repeats */
        return;
    }
    group->runs[group->count++] = run;
    group->bytes += bench_cell_bytes(run);
    group->threads += choice->workers > 0 ? (uint64_t)choice->workers : 0;
}

/* The cells [first, first + count) differ only in workers and the way to the GPU. */
static void run_group(struct sweep *sweep, uint64_t first, uint64_t count)
{
    struct group group = { .count = 0 };
    for (uint64_t index = first; index < first + count && !cli_interrupted(); index++) {
        char name[BENCH_CHOICE_NAME_MAX];
        struct bench_choice choice = choice_at(sweep->bench->arguments, index);
        if (!has_room(&group, &choice))
            finish_group(sweep, &group);
        bench_choice_name(&choice, name);
        show_progress(&sweep->progress, name);
        join_group(sweep, &group, &choice, &sweep->cells[index]);
        advance_progress(&sweep->progress);
    }
    finish_group(sweep, &group);
    print_rows(sweep);
}

/* After an interruption a complete cell may follow an incomplete one. */
static void print_late_rows(struct sweep *sweep)
{
    for (uint64_t index = sweep->printed; index < sweep->count; index++)
        if (sweep->cells[index].done)
            print_row(sweep, &sweep->cells[index]);
}

static void run_cells(struct sweep *sweep)
{
    const struct bench_arguments *arguments = sweep->bench->arguments;
    const uint64_t size = group_size(arguments);
    begin_progress(&sweep->progress, 2 * (uint32_t)sweep->count, sweep->bench);
    for (uint64_t first = 0; first < sweep->count && !cli_interrupted(); first += size) {
        sweep->group_end_ns =
            sweep->progress.begin_ns + (uint64_t)((double)sweep->progress.budget_ns *
                                                  (double)(first + size) / (double)sweep->count);
        run_group(sweep, first, size);
    }
    cli_progress_line_wipe(&sweep->progress.line);
    print_late_rows(sweep);
}

/* "interrupted; left out 5 of 16 cells: workers 2, ...; and 4 more" */
static void report_left_out(const struct sweep *sweep)
{
    enum { NAMED = 3 };
    uint64_t left_out = 0, fewer = 0;
    for (uint64_t index = 0; index < sweep->count; index++) {
        const struct bench_cell *cell = &sweep->cells[index];
        left_out += !cell->done;
        fewer += cell->done && cell->error[0] == '\0' &&
                 cell->repeats < sweep->bench->arguments->repeats;
    }
    fprintf(stderr,
            "loaderbench: interrupted; %" PRIu64 " of %" PRIu64 " cells are left out, %" PRIu64
            " have fewer repeats than asked for",
            left_out, sweep->count, fewer);
    uint32_t named = 0;
    for (uint64_t index = 0; index < sweep->count && named < NAMED; index++) {
        char name[BENCH_CHOICE_NAME_MAX];
        const struct bench_choice choice = choice_at(sweep->bench->arguments, index);
        if (sweep->cells[index].done)
            continue;
        bench_choice_name(&choice, name);
        fprintf(stderr, "%s%s", named++ == 0 ? ". Left out: " : "; ", name);
    }
    if (left_out > named)
        fprintf(stderr, "; and %" PRIu64 " more", left_out - named);
    fputc('\n', stderr);
}

static int status_of(const struct sweep *sweep, uint64_t kept, bool busy)
{
    if (cli_interrupted())
        return kept > 0 ? BENCH_SWEEP_INTERRUPTED : BENCH_SWEEP_NOTHING;
    for (uint64_t index = 0; index < kept; index++)
        if (sweep->cells[index].error[0] != '\0' && !sweep->cells[index].skipped)
            return BENCH_SWEEP_FAILED;
    return busy && sweep->bench->arguments->strict ? BENCH_SWEEP_BUSY : BENCH_SWEEP_GOOD;
}

/* Moves cells with a row to the front, in order; returns their number. */
static uint64_t keep_done(struct bench_cell *cells, uint64_t count)
{
    uint64_t kept = 0;
    for (uint64_t index = 0; index < count; index++)
        if (cells[index].done && index != kept++)
            cells[kept - 1] = cells[index];
    return kept;
}

/* Milliseconds that page-locking adds to create, where no GPU profits from it: medians, measured in
 * turn; NaN on failure. */
static double time_pinning(const struct bench_bench *bench)
{
    enum { TURNS = 5 };
    struct bench_choice choice = choice_at(bench->arguments, 0);
    double ms[2][TURNS];
    for (int turn = 0; turn < TURNS; turn++)
        for (int pinned = 0; pinned < 2; pinned++) {
            stoker_loader *loader = NULL;
            choice.pin_memory = pinned == 1 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
            const stoker_loader_options options = bench_cell_options(bench, &choice);
            const uint64_t begin_ns = stk_now_ns();
            if (stoker_loader_create(&loader, bench->dataset, &options, NULL) != STOKER_OK)
                return NAN;
            ms[pinned][turn] = (double)(stk_now_ns() - begin_ns) / 1e6;
            stoker_loader_destroy(&loader);
        }
    return fmax(bench_statistics_of(ms[1], TURNS).median - bench_statistics_of(ms[0], TURNS).median,
                0);
}

static struct bench_circumstances circumstances_of(const struct bench_bench *bench,
                                                   const struct bench_cpu_use *begun)
{
    const bool alone = !bench_ranks_several(bench->ranks);
    return (struct bench_circumstances){
        .others_cpus = alone ? bench_others_cpus(begun) : (double)NAN,
        .cpus = bench->cpus,
        .pin_ms = alone && bench->arguments->device == STOKER_DEVICE_CPU &&
                          !bench->arguments->pins_given && !cli_interrupted()
                      ? time_pinning(bench)
                      : (double)NAN,
    };
}

int bench_sweep_run(struct bench_bench *bench, const struct bench_machine *machine,
                    struct bench_sheet *sheets, uint32_t sheet_count)
{
    struct sweep sweep = { .bench = bench,
                           .count = cell_count(bench->arguments),
                           .sheets = sheets,
                           .sheet_count = sheet_count };
    if (sweep.count <= UINT32_MAX / 2)
        sweep.cells = calloc(sweep.count, sizeof(*sweep.cells));
    if (sweep.cells == NULL) {
        fprintf(stderr, "loaderbench: no memory for %" PRIu64 " cells\n", sweep.count);
        return BENCH_SWEEP_FAILED;
    }
    cli_interrupt_watch(SIGINT);
    for (uint32_t index = 0; index < sheet_count; index++) {
        sheets[index].columns = bench->arguments->wide ? BENCH_COLUMNS_WIDE : BENCH_COLUMNS_NARROW;
        sheets[index].samples = machine->samples;
        sheets[index].colors = bench_shows_colors(sheets[index].file);
        sheets[index].form->start(&sheets[index], machine);
    }
    const struct bench_cpu_use begun = bench_cpu_use_now();
    run_cells(&sweep);
    const struct bench_circumstances circumstances = circumstances_of(bench, &begun);
    if (cli_interrupted() && bench->ranks->why[0] == '\0')
        report_left_out(&sweep);
    const uint64_t kept = keep_done(sweep.cells, sweep.count);
    struct bench_advice advice;
    bench_advice_write(&advice, sweep.cells, kept, bench->arguments, &circumstances);
    for (size_t index = 0; index < bench->pool.count; index++)
        bench_pool_summarize(&bench->pool.entries[index]);
    for (uint32_t index = 0; index < sheet_count; index++) {
        for (size_t row = 0; row < bench->pool.count; row++)
            sheets[index].form->ceiling(&sheets[index], &bench->pool.entries[row].row);
        sheets[index].form->advice(&sheets[index], &advice,
                                   advice.best == NULL ? 0 : (uint64_t)(advice.best - sweep.cells));
        sheets[index].form->finish(&sheets[index]);
    }
    const int status = status_of(&sweep, kept, advice.busy);
    free(sweep.cells);
    return status;
}
