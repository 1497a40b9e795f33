/* sweep.c - every combination of the lists, one cell after the other.
 *
 * The order is that of a person's question: for this type and batch, what do more
 * workers give, and what does pinning change? So pins stand next to each other.
 */
#include "sweep.h"
#include "advice.h"
#include "progress.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static uint64_t cell_count(const struct bench_arguments *arguments)
{
    return (uint64_t)arguments->caches.count * arguments->dtypes.count *
           arguments->batch_sizes.count * arguments->workers.count * arguments->pins.count;
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
    choice.workers = pick(&arguments->workers, &index);
    choice.batch_size = (uint32_t)pick(&arguments->batch_sizes, &index);
    choice.dtype = (stoker_dtype)pick(&arguments->dtypes, &index);
    choice.cache = (stoker_cache)pick(&arguments->caches, &index);
    return choice;
}

static void tell(struct bench_progress *progress, const struct bench_choice *choice)
{
    char text[120], workers[16] = "auto";
    if (choice->workers != STOKER_WORKERS_AUTO)
        snprintf(workers, sizeof(workers), "%" PRId32, choice->workers);
    snprintf(text, sizeof(text), "workers %s, batch %" PRIu32 ", %s, %s", workers,
             choice->batch_size,
             choice->dtype == STOKER_DTYPE_NONE ? "as stored" : stoker_dtype_name(choice->dtype),
             choice->pin_memory == STOKER_ON ? "pinned" : "pageable");
    bench_progress_step(progress, text);
}

/* memcpy does not depend on the cell; one value of each is taken beside each cell, as
 * far as repeats go, so that it sees the same hour as the cells. */
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
                                   .seconds = 0.05 };
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

static void run_cells(struct bench_bench *bench, struct bench_cell *cells, uint64_t count,
                      struct bench_sheet *sheet, const struct bench_form *form)
{
    const struct bench_arguments *arguments = bench->arguments;
    struct bench_progress progress;
    bench_progress_begin(&progress, (uint32_t)count, arguments->quiet);
    for (uint64_t index = 0; index < count; index++) {
        struct bench_choice choice = choice_at(arguments, index);
        tell(&progress, &choice);
        bench_cell_run(bench, &choice, &cells[index]);
        if (arguments->ceilings && index < arguments->repeats)
            (void)measure_memcpy(bench); /* without it a row is missing, nothing more */
        bench_progress_wipe(&progress);
        form->cell(sheet, &cells[index]);
    }
    for (uint64_t index = count; arguments->ceilings && index < arguments->repeats; index++)
        (void)measure_memcpy(bench);
}

int bench_sweep_run(struct bench_bench *bench, const struct bench_machine *machine,
                    const struct bench_form *form, FILE *file)
{
    struct bench_sheet sheet = { .file = file };
    uint64_t count = cell_count(bench->arguments);
    struct bench_cell *cells = count <= UINT32_MAX ? calloc(count, sizeof(*cells)) : NULL;
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
