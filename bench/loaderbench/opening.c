/* opening.c - open, read the first sample, close; timed. */
#include "bench/loaderbench/opening.h"
#include "bench/loaderbench/cell/run.h"
#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/output/fields.h"
#include "bench/loaderbench/statistics.h"
#include "loader/base/clock.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

struct opening {
    double open_ms;
    double ms;
    int rc; /* result of opening, or of reading if that succeeded */
    uint64_t samples;
    uint64_t kept_bytes;
    uint64_t peak_bytes;
    stoker_error error;
};

static int read_first(const stoker_dataset *dataset, stoker_error *error)
{
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    void *row = malloc(row_bytes);
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row, .bytes_max = row_bytes } };
    int rc = row == NULL ? STOKER_ENOMEM : stoker_dataset_read(dataset, 0, rows, error);
    free(row);
    return rc;
}

static uint64_t above(uint64_t bytes, uint64_t base)
{
    return bytes > base ? bytes - base : 0;
}

static void open_once(const char *spec, struct opening *out)
{
    stoker_dataset *dataset = NULL;
    malloc_trim(0);
    const uint64_t base = bench_rss_bytes();
    const bool fresh = bench_rss_peak_reset();
    const uint64_t begin_ns = stk_now_ns();
    out->rc = stoker_dataset_open(&dataset, spec, NULL, &out->error);
    const uint64_t opened_ns = stk_now_ns();
    out->open_ms = (double)(opened_ns - begin_ns) / 1e6;
    if (out->rc == STOKER_OK) {
        out->kept_bytes = above(bench_rss_bytes(), base);
        out->samples = stoker_dataset_get_info(dataset)->count;
        const uint64_t reading_ns = stk_now_ns();
        out->rc = read_first(dataset, &out->error);
        out->ms = out->open_ms + (double)(stk_now_ns() - reading_ns) / 1e6;
    } else {
        out->ms = out->open_ms;
    }
    out->peak_bytes = fresh ? above(bench_rss_peak_bytes(), base) : 0;
    stoker_dataset_close(&dataset);
}

static void print_text(FILE *file, const char *key, const char *text)
{
    fprintf(file, ", \"%s\": ", key);
    bench_json_string(file, text);
}

static void print_opening(FILE *file, const struct bench_arguments *arguments,
                          const struct bench_machine *machine, const struct opening *first,
                          struct bench_series *opens, struct bench_series *times)
{
    const struct bench_statistics all = bench_statistics_of(times->values, times->count);
    fputs("{\"kind\": \"open\", \"dataset\": ", file);
    bench_json_string(file, arguments->dataset);
    print_text(file, "date", machine->date);
    print_text(file, "host", machine->host);
    print_text(file, "commit", machine->commit);
    print_text(file, "compiler", machine->compiler);
    fputs(", \"load_1m\": ", file);
    bench_print_number(file, machine->load_1m, "null");
    fprintf(file, ", \"samples\": %" PRIu64, first->samples);
    print_text(file, "code", first->rc == STOKER_OK ? "" : stoker_error_name(first->rc));
    print_text(file, "message", first->rc == STOKER_OK ? "" : first->error.message);
    fprintf(file,
            ", \"repeats\": %" PRIu32 ", \"ms\": %.6f, \"ms_min\": %.6f, \"open_ms\": %.6f, "
            "\"kept_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 "}\n",
            arguments->repeats, all.median, all.min, bench_series_median(opens), first->kept_bytes,
            first->peak_bytes);
}

void bench_opening_measure(const struct bench_arguments *arguments,
                           const struct bench_machine *machine, FILE *file)
{
    struct opening first = { .rc = STOKER_OK };
    struct bench_series *series = calloc(2, sizeof(*series)); /* opening; opening and reading */
    for (uint32_t repeat = 0; series != NULL && repeat < arguments->repeats; repeat++) {
        struct opening opening = { .rc = STOKER_OK };
        open_once(arguments->dataset, &opening);
        bench_series_push(&series[0], opening.open_ms);
        bench_series_push(&series[1], opening.ms);
        if (repeat == 0)
            first = opening;
    }
    if (series != NULL)
        print_opening(file, arguments, machine, &first, &series[0], &series[1]);
    free(series);
}
