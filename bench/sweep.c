/* sweep.c - every combination of the lists, those that are compared side by side.
 *
 * The order is that of a person's question: for this type and batch, what do more
 * workers give, and what do pinning and copying ahead change? The cells that answer it form a group: all of
 * them are begun, then each gets its repeats in turn with the others', since on a
 * machine whose speed drifts only what is measured close together can be compared.
 *
 *   begin a, begin b, ...  { repeat a, repeat b, ... } x repeats   end a, end b, ...
 */
#include "sweep.h"
#include "advice.h"
#include "progress.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    GROUP_CELLS_MAX = 64,
    GROUP_THREADS_MAX = 64, /* asleep, but each has a stack and a ring */
    GROUP_BYTES_MAX = 512 << 20
};

/* Cells that are compared side by side. */
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

static int32_t pick(const struct bench_list *list, uint64_t *index)
{
    int32_t value = list->values[*index % list->count];
    *index /= list->count;
    return value;
}

/* Cell number `index`; the last list turns fastest. */
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

static void tell(struct bench_progress *progress, const struct bench_choice *choice)
{
    char text[BENCH_CHOICE_NAME_MAX];
    bench_choice_name(choice, text);
    bench_progress_step(progress, text);
}

/* memcpy does not depend on the cell; one value of each is taken in each round, so that it
 * sees the same hour as the cells. */
static int measure_memcpy(struct bench_bench *bench)
{
    static const enum bench_ceiling_kind kinds[] = { BENCH_CEILING_MEMCPY_DRAM,
                                                     BENCH_CEILING_MEMCPY_CACHE };
    for (size_t index = 0; index < 4; index++) {
        uint32_t threads = index < 2 ? 1 : bench->cpus;
        struct bench_work work = { .threads =
                                       threads < BENCH_THREADS_MAX ? threads : BENCH_THREADS_MAX,
                                   .batch_size = 1,
                                   .ring_rows = 1,
                                   .seconds = 0.01 };
        double rate = NAN;
        if (index >= 2 && threads == 1)
            break;
        int rc = bench_ceiling_measure(kinds[index % 2], &work, &rate, NULL);
        struct bench_ceiling_row row = { .threads = work.threads, .dtype = "bytes" };
        snprintf(row.name, sizeof(row.name), "%s", bench_ceiling_name(kinds[index % 2]));
        if (rc == STOKER_OK)
            rc = bench_pool_add(&bench->pool, &row, 1, rate);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

static void print_ceilings(struct bench_sheet *sheet, const struct bench_form *form,
                           struct bench_pool *pool)
{
    for (size_t index = 0; index < pool->count; index++) {
        bench_pool_summarize(&pool->entries[index]);
        form->ceiling(sheet, &pool->entries[index].row);
    }
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

/* All repeats of a group; its cells are complete then. The progress gets one step a cell. */
static void finish_group(struct bench_bench *bench, struct group *group,
                         struct bench_progress *progress)
{
    const uint32_t repeats = bench->arguments->repeats;
    for (uint32_t repeat = 0; repeat < repeats; repeat++) {
        for (uint32_t index = 0; index < group->count; index++)
            bench_cell_repeat(group->runs[index]);
        if (bench->arguments->ceilings)
            (void)measure_memcpy(bench); /* without it a row is missing, nothing more */
        uint64_t done = (uint64_t)(repeat + 1) * group->count / repeats;
        uint64_t before = (uint64_t)repeat * group->count / repeats;
        for (; before < done; before++)
            bench_progress_step(progress, "in turn");
    }
    for (uint32_t index = 0; index < group->count; index++)
        bench_cell_end(group->runs[index]);
    *group = (struct group){ .count = 0 };
}

/* Begin one cell. One that fails only because others of its group hold what it needs
 * (locked memory, say) is tried again alone. */
static void join_group(struct bench_bench *bench, struct group *group,
                       const struct bench_choice *choice, struct bench_cell *cell,
                       struct bench_progress *progress)
{
    struct bench_run *run = NULL;
    int rc = bench_cell_begin(&run, bench, choice, cell);
    if (rc != STOKER_OK && group->count > 0) {
        finish_group(bench, group, progress);
        rc = bench_cell_begin(&run, bench, choice, cell);
    }
    if (rc != STOKER_OK) {
        bench_progress_step(progress, "failed"); /* its share of the repeats */
        return;
    }
    group->runs[group->count++] = run;
    group->bytes += bench_cell_bytes(run);
    group->threads += choice->workers > 0 ? (uint64_t)choice->workers : 0;
}

/* The cells [first, first + count) differ in workers and the way to the GPU alone. */
static void run_group(struct bench_bench *bench, struct bench_cell *cells, uint64_t first,
                      uint64_t count, struct bench_progress *progress)
{
    struct group group = { .count = 0 };
    for (uint64_t index = first; index < first + count; index++) {
        struct bench_choice choice = choice_at(bench->arguments, index);
        if (!has_room(&group, &choice))
            finish_group(bench, &group, progress);
        tell(progress, &choice);
        join_group(bench, &group, &choice, &cells[index], progress);
    }
    finish_group(bench, &group, progress);
}

static void run_cells(struct bench_bench *bench, struct bench_cell *cells, uint64_t count,
                      struct bench_sheet *sheet, const struct bench_form *form)
{
    const struct bench_arguments *arguments = bench->arguments;
    const uint64_t size = group_size(arguments);
    struct bench_progress progress;
    bench_progress_begin(&progress, 2 * (uint32_t)count, arguments->quiet);
    for (uint64_t first = 0; first < count; first += size) {
        run_group(bench, cells, first, size, &progress);
        bench_progress_wipe(&progress);
        for (uint64_t index = first; index < first + size; index++)
            form->cell(sheet, &cells[index]);
    }
}

int bench_sweep_run(struct bench_bench *bench, const struct bench_machine *machine,
                    const struct bench_form *form, FILE *file)
{
    struct bench_sheet sheet = { .file = file, .columns = bench_output_columns(bench->arguments) };
    uint64_t count = cell_count(bench->arguments);
    struct bench_cell *cells = count <= UINT32_MAX / 2 ? calloc(count, sizeof(*cells)) : NULL;
    struct bench_advice advice;
    if (cells == NULL) {
        fprintf(stderr, "loaderbench: no memory for %" PRIu64 " cells\n", count);
        return 1;
    }
    form->start(&sheet, machine);
    run_cells(bench, cells, count, &sheet, form);
    print_ceilings(&sheet, form, &bench->pool);
    bench_advice_write(&advice, cells, count, bench->arguments);
    form->advice(&sheet, &advice);
    form->finish(&sheet);

    int status = 0;
    for (uint64_t index = 0; index < count; index++)
        if (cells[index].error[0] != '\0' && !cells[index].skipped)
            status = 1;
    free(cells);
    return status;
}
