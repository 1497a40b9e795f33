/* csv.c - a sheet for spreadsheets: cells and ceilings under one header.
 *
 *   kind, name, threads, ring_bytes, note, <the columns of a cell>, date, host, commit, ...
 *
 * With several ranks, their number and the slowest one precede "date". A ceiling fills the columns
 * that it shares with a cell. The rest of the machine and the advice are in the other forms only.
 */
#include "bench/loaderbench/output/fields.h"
#include "bench/loaderbench/output/output.h"

#include <inttypes.h>
#include <string.h>

static const char *const ceiling_columns[] = { "name", "threads", "ring_bytes", "note" };
enum { CEILING_COLUMNS = sizeof(ceiling_columns) / sizeof(ceiling_columns[0]) };

/* Columns about the machine, at the end of each row. */
static const char *const machine_columns[] = { "date",    "host", "commit", "compiler",
                                               "load_1m", "cpu",  "dataset" };
enum { MACHINE_COLUMNS = sizeof(machine_columns) / sizeof(machine_columns[0]) };

/* A field by RFC 4180: quoted if it contains a comma, a quote or a line break; quotes are
 * doubled. */
static void print_text(FILE *file, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"')
            fputc('"', file);
        fputc(*at, file);
    }
    fputc('"', file);
}

static void print_value(FILE *file, const struct bench_field *field, const char *base)
{
    if (field->kind == BENCH_TEXT)
        print_text(file, base + field->offset);
    else
        bench_print_field(file, field, base, "");
}

static const struct bench_field *find_field(const struct bench_field *fields, size_t count,
                                            const char *name)
{
    for (size_t index = 0; index < count; index++)
        if (strcmp(fields[index].name, name) == 0)
            return &fields[index];
    return NULL;
}

static const struct bench_field *find_ceiling_field(const char *name)
{
    return find_field(bench_ceiling_fields, bench_ceiling_field_count, name);
}

static void end_row(const struct bench_sheet *sheet, const struct bench_cell *row)
{
    if (sheet->machine->ranks > 1) {
        fprintf(sheet->file, ",%" PRIu32, sheet->machine->ranks);
        if (row == NULL || row->error[0] != '\0') {
            fputs(",,", sheet->file);
        } else {
            fprintf(sheet->file, ",%" PRIu32 ",", row->slowest_rank);
            bench_print_number(sheet->file, row->slowest_rank_samples_per_s, "");
        }
    }
    for (size_t index = 0; index < MACHINE_COLUMNS; index++) {
        const struct bench_field *field =
            find_field(bench_machine_fields, bench_machine_field_count, machine_columns[index]);
        fputc(',', sheet->file);
        print_value(sheet->file, field, (const char *)sheet->machine);
    }
    fputs("\r\n", sheet->file);
    fflush(sheet->file);
}

static void start(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    sheet->machine = machine;
    fputs("kind", sheet->file);
    for (size_t index = 0; index < CEILING_COLUMNS; index++)
        fprintf(sheet->file, ",%s", ceiling_columns[index]);
    for (size_t index = 0; index < bench_cell_field_count; index++)
        fprintf(sheet->file, ",%s", bench_cell_fields[index].name);
    if (machine->ranks > 1)
        fputs(",ranks,slowest_rank,slowest_rank_samples_per_s", sheet->file);
    for (size_t index = 0; index < MACHINE_COLUMNS; index++)
        fprintf(sheet->file, ",%s", machine_columns[index]);
    fputs("\r\n", sheet->file);
}

static void cell(struct bench_sheet *sheet, const struct bench_cell *row)
{
    fputs("cell", sheet->file);
    for (size_t index = 0; index < CEILING_COLUMNS; index++)
        fputc(',', sheet->file);
    for (size_t index = 0; index < bench_cell_field_count; index++) {
        fputc(',', sheet->file);
        print_value(sheet->file, &bench_cell_fields[index], (const char *)row);
    }
    end_row(sheet, row);
}

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    fputs("ceiling", sheet->file);
    for (size_t index = 0; index < CEILING_COLUMNS; index++) {
        fputc(',', sheet->file);
        print_value(sheet->file, find_ceiling_field(ceiling_columns[index]), (const char *)row);
    }
    for (size_t index = 0; index < bench_cell_field_count; index++) {
        const struct bench_field *field = find_ceiling_field(bench_cell_fields[index].name);
        fputc(',', sheet->file);
        if (field != NULL)
            print_value(sheet->file, field, (const char *)row);
    }
    end_row(sheet, NULL);
}

static void advice(struct bench_sheet *sheet, const struct bench_advice *row, uint64_t best)
{
    (void)sheet;
    (void)row;
    (void)best;
}

static void finish(struct bench_sheet *sheet)
{
    fflush(sheet->file);
}

const struct bench_form bench_form_csv = { "csv", start, cell, ceiling, advice, finish };
