/* json.c - JSON Lines: one object per line, "kind" first; and page.html around these lines, which a
 * script in it draws. */
#include "bench/loaderbench/output/fields.h"
#include "bench/loaderbench/output/output.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/fatbin.h"

/* Length of the well-formed UTF-8 sequence that starts here; 0 = none. */
static size_t sequence_length(const unsigned char *at)
{
    size_t length = at[0] < 0x80       ? 1
                    : at[0] >> 5 == 6  ? 2
                    : at[0] >> 4 == 14 ? 3
                    : at[0] >> 3 == 30 ? 4
                                       : 0;
    for (size_t index = 1; index < length; index++)
        if (at[index] >> 6 != 2)
            return 0;
    bool overlong = (length == 2 && at[0] < 0xC2) ||
                    (length == 3 && at[0] == 0xE0 && at[1] < 0xA0) ||
                    (length == 4 && at[0] == 0xF0 && at[1] < 0x90);
    bool surrogate = length == 3 && at[0] == 0xED && at[1] >= 0xA0;
    bool beyond = length == 4 && (at[0] > 0xF4 || (at[0] == 0xF4 && at[1] >= 0x90));
    return overlong || surrogate || beyond ? 0 : length;
}

void bench_json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        size_t length = sequence_length(at);
        if (length == 0)
            fputs("\\ufffd", file); /* a path may hold any bytes, a JSON text may not */
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7F || *at == '<') /* no text ends the script of the page */
            fprintf(file, "\\u%04x", *at);
        else
            fwrite(at, 1, length, file);
        at += length == 0 ? 1 : length;
    }
    fputc('"', file);
}

static void print_value(FILE *file, const struct bench_field *field, const char *base)
{
    const char *const text = base + field->offset;
    if (field->kind != BENCH_TEXT)
        bench_print_field(file, field, base, "null");
    else if (text[0] == '\0')
        fputs("null", file);
    else
        bench_json_string(file, text);
}

static void print_fields(FILE *file, const char *kind, const struct bench_field *fields,
                         size_t count, const void *base)
{
    fprintf(file, "{\"kind\": \"%s\"", kind);
    for (size_t index = 0; index < count; index++) {
        fprintf(file, ", \"%s\": ", fields[index].name);
        print_value(file, &fields[index], base);
    }
}

static void end_object(FILE *file)
{
    fputs("}\n", file);
    fflush(file); /* a reader of a pipe sees each row as it comes */
}

static void print_object(FILE *file, const char *kind, const struct bench_field *fields,
                         size_t count, const void *base)
{
    print_fields(file, kind, fields, count, base);
    end_object(file);
}

static void start(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    print_fields(sheet->file, "machine", bench_machine_fields, bench_machine_field_count, machine);
    if (machine->ranks > 1) {
        fprintf(sheet->file, ", \"ranks\": %" PRIu32 ", \"launcher\": ", machine->ranks);
        bench_json_string(sheet->file, machine->launcher);
    }
    end_object(sheet->file);
}

/* {"decode": 0.93, "files": 0.41} */
static void print_shares(FILE *file, const char *key, const struct bench_share_row *shares,
                         uint32_t count)
{
    fprintf(file, ", \"%s\": {", key);
    for (uint32_t index = 0; index < count; index++) {
        fputs(index > 0 ? ", " : "", file);
        bench_json_string(file, shares[index].name);
        fputs(": ", file);
        bench_print_number(file, shares[index].share, "null");
    }
    fputc('}', file);
}

static void cell(struct bench_sheet *sheet, const struct bench_cell *row)
{
    print_fields(sheet->file, "cell", bench_cell_fields, bench_cell_field_count, row);
    /* For comparing cells: repeat n of one was measured next to repeat n of another. */
    fputs(", \"rates\": [", sheet->file);
    for (uint32_t index = 0; index < row->rate_count; index++) {
        if (index > 0)
            fputs(", ", sheet->file);
        bench_print_number(sheet->file, row->rates[index], "null");
    }
    fputc(']', sheet->file);
    if (row->ranks > 1) {
        fprintf(sheet->file,
                ", \"ranks\": %" PRIu32 ", \"slowest_rank\": %" PRIu32
                ", \"slowest_rank_samples_per_s\": ",
                row->ranks, row->slowest_rank);
        bench_print_number(sheet->file, row->slowest_rank_samples_per_s, "null");
    }
    print_shares(sheet->file, "shares", row->shares, row->share_count);
    print_shares(sheet->file, "first_epoch_shares", row->first.shares, row->first.share_count);
    end_object(sheet->file);
}

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    print_object(sheet->file, "ceiling", bench_ceiling_fields, bench_ceiling_field_count, row);
}

static void advice(struct bench_sheet *sheet, const struct bench_advice *row, uint64_t best)
{
    fprintf(sheet->file,
            "{\"kind\": \"advice\", \"busy\": %s, \"verdict\": ", row->busy ? "true" : "false");
    bench_json_string(sheet->file, row->verdict);
    if (row->best != NULL) {
        fprintf(sheet->file, ", \"cell\": %" PRIu64 ", \"options\": ", best);
        bench_json_string(sheet->file, row->options);
        fputs(", \"python\": ", sheet->file);
        bench_json_string(sheet->file, row->python);
        fputs("}\n", sheet->file);
    } else {
        fputs(", \"cell\": null, \"options\": null, \"python\": null}\n", sheet->file);
    }
}

static void finish(struct bench_sheet *sheet)
{
    fflush(sheet->file);
}

const struct bench_form bench_form_json = { "json", start, cell, ceiling, advice, finish };

/* ---- the page ------------------------------------------------------------------------ */

const void *bench_page(size_t *bytes);
STK_EMBED_FATBIN(bench_page, BENCH_PAGE)

/* Writes the template up to its marker, or what follows it. */
static void print_page(FILE *file, bool head)
{
    static const char marker[] = "@RESULT@";
    size_t bytes = 0;
    const char *const page = bench_page(&bytes);
    const char *const at = memmem(page, bytes, marker, sizeof(marker) - 1);
    assert(at != NULL);
    const size_t head_bytes = (size_t)(at - page);
    const size_t tail_at = head_bytes + sizeof(marker) - 1;
    fwrite(page + (head ? 0 : tail_at), 1, head ? head_bytes : bytes - tail_at, file);
}

static void start_page(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    print_page(sheet->file, true);
    start(sheet, machine);
}

static void finish_page(struct bench_sheet *sheet)
{
    print_page(sheet->file, false);
    fflush(sheet->file);
}

const struct bench_form bench_form_html = {
    "html", start_page, cell, ceiling, advice, finish_page
};
