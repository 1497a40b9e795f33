/* test_output.c - one result in four forms, made from fixed values.
 *
 * Table, JSON and CSV are compared with golden files.
 */
#include <errno.h>
#include <math.h>

#include "bench/loaderbench/output/fields.h"
#include "bench/loaderbench/output/output.h"
#include "support/leaks.h"

/* ---- fixed results ---------------------------------------------------------------- */

static struct bench_machine fixed_machine(void)
{
    return (struct bench_machine){ .schema = BENCH_SCHEMA,
                                   .date = "2026-11-22T13:00:00Z",
                                   .host = "host",
                                   .commit = "25c2442fd80a-dirty",
                                   .compiler = "gcc 12.2.0",
                                   .load_1m = 0.5,
                                   .load_5m = NAN,
                                   .load_15m = 1.25,
                                   .tool_version = "1.2.3",
                                   .library_version = "1.2.3",
                                   .args = "--format \"x\" a\\b",
                                   .cpu = "Fixed CPU",
                                   .gpu = "Fixed GPU",
                                   .cpus = 2,
                                   .kernel = "Linux 6.1 x86_64",
                                   .disk = "/dev/vda ext4",
                                   .memory_bytes = (uint64_t)8 << 30,
                                   .dataset = "synth:digits",
                                   .dataset_name = "synth",
                                   .samples = 60000,
                                   .row_bytes = 784 };
}

static struct bench_cell fixed_cell(void)
{
    return (struct bench_cell){ .workers = 2,
                                .automatic = true,
                                .pin_memory = "on",
                                .pinned = true,
                                .device = "cuda:0",
                                .non_blocking = "off",
                                .convert = "host",
                                .batch_size = 64,
                                .dtype = "float32",
                                .reader = "none",
                                .cache = "decoded",
                                .read_depth = 128,
                                .slots = 32,
                                .first = { .separate = true,
                                           .samples_per_s = 65432,
                                           .samples_per_s_min = 60000,
                                           .samples_per_s_max = 70000,
                                           .samples_per_s_low = 62000,
                                           .samples_per_s_high = 68000,
                                           .bytes_per_s = 205e6,
                                           .stages = { 2, 15, 1, 0.5 },
                                           .limit = "decode",
                                           .verdict = "decode-bound",
                                           .ceiling = "parts in turn",
                                           .ceiling_samples_per_s = 70000,
                                           .ceiling_share = 0.93,
                                           .shares = { { "decode", 0.9 } },
                                           .share_count = 1,
                                           .repeats = 3,
                                           .whole = true },
                                .cached_share = 1,
                                .stages = { 0, 0, 0.25, 0.05 },
                                .samples_per_s = 6543210,
                                .samples_per_s_min = 6000000,
                                .samples_per_s_max = 7000000,
                                .samples_per_s_low = 6200000,
                                .samples_per_s_high = 6900000,
                                .rates = { 6000000, 6543210, 7000000 },
                                .shares = { { "gather", 0.934 }, { "decode", 0.7 } },
                                .share_count = 2,
                                .rate_count = 3,
                                .spread = 0.15,
                                .bytes_per_s = 20.5e9,
                                .first_batch_ms = 1.25,
                                .create_ms = 1.0,
                                .resume_ms = 1.5,
                                .cpu_s_per_million = 0.305,
                                .stall_share = 0.5,
                                .epoch_gap_ms = 0.02,
                                .rss_bytes = 60000000,
                                .rss_base_bytes = 10000000,
                                .announced_bytes = 50000000,
                                .slot_bytes = 6422528,
                                .locked_bytes = 6422528,
                                .device_bytes = 1000000,
                                .copy_bytes = 50176,
                                .copy_waits = 3,
                                .limit = "convert",
                                .verdict = "convert-bound",
                                .ceiling = "gather",
                                .ceiling_samples_per_s = 7000000,
                                .ceiling_share = 0.934,
                                .headspace_samples_per_s = 7e7,
                                .headspace_share = 0.0934,
                                .cold_resident_share = NAN,
                                .repeats = 5,
                                .verified = 60000,
                                .whole_epochs = true };
}

static struct bench_cell failed_cell(bool skipped)
{
    struct bench_cell cell = { .workers = 0,
                               .pin_memory = "on",
                               .device = "cpu",
                               .batch_size = 512,
                               .dtype = "float16",
                               .reader = "auto",
                               .cache = "auto",
                               .skipped = skipped,
                               .error = "create: \"no\", said <mlock> & left" };
    cell.samples_per_s = NAN;
    cell.samples_per_s_min = -INFINITY;
    cell.samples_per_s_max = INFINITY;
    cell.ceiling_share = NAN;
    cell.first.samples_per_s = NAN;
    cell.cached_share = NAN;
    return cell;
}

static struct bench_ceiling_row fixed_ceiling(void)
{
    return (struct bench_ceiling_row){ .name = "gather",
                                       .threads = 2,
                                       .batch_size = 64,
                                       .dtype = "float32",
                                       .ring_bytes = 3211264,
                                       .samples_per_s = 7000000,
                                       .samples_per_s_min = 6900000,
                                       .samples_per_s_max = 7100000,
                                       .bytes_per_s = 21.95e9,
                                       .repeats = 5,
                                       .note = "on a part, not all" };
}

/* Everything in one form; the caller frees the text. */
static char *print_all(const struct bench_form *form, uint32_t columns)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    cr_assert_not_null(file);
    struct bench_sheet sheet = {
        .file = file, .columns = columns, .best_samples_per_s = 8e6, .samples = 60000
    };
    struct bench_machine machine = fixed_machine();
    struct bench_cell cells[] = { fixed_cell(), failed_cell(false), failed_cell(true) };
    struct bench_ceiling_row row = fixed_ceiling();
    struct bench_ceiling_row missing = { .name = "bare io_uring",
                                         .threads = 1,
                                         .dtype = "uint8",
                                         .samples_per_s = NAN,
                                         .samples_per_s_min = NAN,
                                         .samples_per_s_max = NAN,
                                         .bytes_per_s = NAN,
                                         .note = "not available here" };
    struct bench_advice advice = { .best = &cells[0],
                                   .busy = true,
                                   .verdict = "Machine busy: figures not usable.",
                                   .options = "stoker_loader_options options = { 0 };",
                                   .python = "train = stoker.DataLoader()" };
    form->start(&sheet, &machine);
    for (size_t index = 0; index < sizeof(cells) / sizeof(cells[0]); index++)
        form->cell(&sheet, &cells[index]);
    form->ceiling(&sheet, &row);
    form->ceiling(&sheet, &missing);
    form->advice(&sheet, &advice, 0);
    form->finish(&sheet);
    cr_assert_eq(fclose(file), 0);
    return text;
}

static char *read_golden(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/golden/%s", STOKER_TEST_SOURCES, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s: %s", path, strerror(errno));
    char *text = calloc(1, 65536);
    size_t size = fread(text, 1, 65535, file);
    cr_assert_lt(size, 65535);
    fclose(file);
    return text;
}

/* ---- the tests --------------------------------------------------------------------- */

/* JSON too is compared whole: every key, null for what was not measured, one object to a line. */
CleanTest(bench_output, each_form_is_the_golden_one)
{
    static const struct {
        const struct bench_form *form;
        uint32_t columns;
        const char *golden;
    } rows[] = { { &bench_form_table, BENCH_COLUMNS_NARROW, "loaderbench-table.txt" },
                 { &bench_form_table, BENCH_COLUMNS_WIDE, "loaderbench-wide.txt" },
                 { &bench_form_json, 0, "loaderbench.json" },
                 { &bench_form_csv, 0, "loaderbench.csv" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = print_all(rows[i].form, rows[i].columns);
        char *golden = read_golden(rows[i].golden);
        cr_assert_str_eq(text, golden, "%s changed:\n%s", rows[i].golden, text);
        free(text);
        free(golden);
    }
}

/* Characters of UTF-8. */
static size_t width_of(const char *line)
{
    size_t width = 0;
    for (; *line != '\0'; line++)
        width += ((unsigned char)*line & 0xC0) != 0x80;
    return width;
}

/* The widest that a value may be which a person would believe; times two for a host and a GPU. */
static void check_width(uint32_t columns, size_t lines_wanted)
{
    struct bench_cell cell = fixed_cell();
    cell.workers = 16;
    cell.batch_size = 65536;
    cell.samples_per_s = 123e6;
    cell.spread = 9.999;
    cell.bytes_per_s = 999.99e9;
    cell.first_batch_ms = 12345.67;
    cell.cpu_s_per_million = 999.999;
    cell.stall_share = 1;
    cell.rss_bytes = (uint64_t)200e9;
    cell.locked_bytes = (uint64_t)100e9;
    cell.ceiling_share = 9.999;
    cell.first.samples_per_s = 123e6;
    cell.first.samples_per_s_min = 1;
    cell.first.samples_per_s_max = 999e6;
    cell.first.samples_per_s_low = 1;
    cell.first.samples_per_s_high = 999e6;
    cell.samples_per_s_low = 1;
    cell.samples_per_s_high = 999e6;
    cell.first.bytes_per_s = 999.99e9;
    cell.first.ceiling_share = 9.999;
    cell.cached_share = 0.4567;
    snprintf(cell.first.limit, sizeof(cell.first.limit), "handover");
    snprintf(cell.dtype, sizeof(cell.dtype), "bfloat16");
    snprintf(cell.convert, sizeof(cell.convert), "device");
    snprintf(cell.limit, sizeof(cell.limit), "consumer");
    struct bench_ceiling_row row = fixed_ceiling();
    snprintf(row.name, sizeof(row.name), "pageable to GPU");
    snprintf(row.note, sizeof(row.note), "on a part of the data set");
    row.read_depth = 1024;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct bench_sheet sheet = {
        .file = file, .columns = columns, .best_samples_per_s = 123e6, .samples = 60000
    };
    const struct bench_machine machine = fixed_machine();
    bench_form_table.start(&sheet, &machine);
    bench_form_table.cell(&sheet, &cell);
    snprintf(cell.device, sizeof(cell.device), "cpu");
    bench_form_table.cell(&sheet, &cell);
    bench_form_table.ceiling(&sheet, &row);
    cr_assert_eq(fclose(file), 0);
    size_t lines = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest), lines++)
        cr_assert_leq(width_of(line), columns, "%s", line);
    cr_assert_eq(lines, lines_wanted);
    free(text);
}

CleanTest(bench_output, no_row_of_the_table_is_wider_than_it_should_be)
{
    /* 7 of the machine; two groups of #, name, header, first, later, cached, headspace; #, header,
     * ceiling */
    check_width(BENCH_COLUMNS_WIDE, 7 + 14 + 3);
    check_width(BENCH_COLUMNS_NARROW, 8 + 14); /* one wraps; ceilings are for --wide */
}

/* Cells under one header; a cell that was not measured appears with its device and type. */
CleanTest(bench_output, a_header_is_for_what_follows_it)
{
    struct bench_cell cells[4] = { fixed_cell(), failed_cell(true), fixed_cell(), fixed_cell() };
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct bench_sheet sheet = { .file = file };
    snprintf(cells[1].device, sizeof(cells[1].device), "cuda:0");
    snprintf(cells[1].dtype, sizeof(cells[1].dtype), "float32");
    snprintf(cells[3].cache, sizeof(cells[3].cache), "none");
    for (int i = 0; i < 4; i++)
        bench_form_table.cell(&sheet, &cells[i]);
    cr_assert_eq(fclose(file), 0);
    const char *const first = strstr(text, "# cuda:0, float32, cache decoded\n");
    const char *const second = strstr(text, "# cuda:0, float32, in memory\n");
    cr_assert(first != NULL && second > first, "%s", text);
    cr_assert_null(strstr(strchr(first, '\n'), "cache decoded"), "%s", text);
    cr_assert_null(strstr(text, "cache auto"), "%s", text);
    free(text);
}

static char *json_of(const char *bytes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    bench_json_string(file, bytes);
    fclose(file);
    return text;
}

CleanTest(bench_output, json_strings_escape_everything)
{
    static const struct {
        const char *in, *out;
    } cases[] = { { "", "\"\"" },
                  { "a\"b\\c", "\"a\\\"b\\\\c\"" },
                  { "tab\tline\n", "\"tab\\u0009line\\u000a\"" },
                  { "\x7f", "\"\\u007f\"" },
                  { "</script>", "\"\\u003c/script>\"" }, /* in a page */
                  { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                    "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
                  { "\xff", "\"\\ufffd\"" },            /* never UTF-8 */
                  { "\xc3", "\"\\ufffd\"" },            /* cut off */
                  { "\xc0\xaf", "\"\\ufffd\\ufffd\"" }, /* overlong */
                  { "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" } /* half a pair */ };
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        char *text = json_of(cases[index].in);
        cr_assert_str_eq(text, cases[index].out);
        free(text);
    }
}

/* What a browser shows of it is seen by check.page. */
CleanTest(bench_output, the_page_holds_the_lines_of_json)
{
    static const char begin[] = "<script type=\"application/json\" id=\"result\">\n";
    char *json = print_all(&bench_form_json, 0);
    char *page = print_all(&bench_form_html, 0);
    cr_assert_eq(strncmp(page, "<!DOCTYPE html>", 15), 0);
    cr_assert_str_eq(page + strlen(page) - 8, "</html>\n");
    cr_assert_null(strstr(page, "@RESULT@"));
    cr_assert_null(strstr(page, "src="), "nothing is fetched");
    cr_assert_null(strstr(page, "url("), "nothing is fetched");
    char *lines = strstr(page, begin);
    cr_assert_not_null(lines);
    lines += strlen(begin);
    cr_assert_eq(strncmp(lines, json, strlen(json)), 0);
    cr_assert_eq(strncmp(lines + strlen(json), "</script>", 9), 0);
    cr_assert_null(strchr(json, '<'), "it could end the script");
    free(json);
    free(page);
}

CleanTest(bench_output, short_numbers)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = { { 0, "0.00" },      { 1.234, "1.23" },   { 99.94, "99.9" },
                  { 999.4, "999" },   { 999.5, "1.00 k" }, { 3741000, "3.74 M" },
                  { 2e13, "20.0 T" }, { 9e15, "9000 T" },  { -1500, "-1.50 k" },
                  { NAN, "-" },       { INFINITY, "-" } };
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        char out[16];
        cr_assert_str_eq(bench_short_number(out, cases[index].value), cases[index].text);
    }
}

CleanTest(bench_output, a_file_appears_complete_or_not_at_all)
{
    char folder[] = "/tmp/stoker-output-XXXXXX";
    char path[64];
    struct bench_target target;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/out", folder);

    cr_assert_eq(bench_target_open(&target, path), STOKER_OK);
    fputs("half", target.file);
    cr_assert_neq(access(path, F_OK), 0, "it is there before it is complete");
    cr_assert_eq(bench_target_close(&target, false), STOKER_OK);
    cr_assert_neq(access(path, F_OK), 0);

    cr_assert_eq(bench_target_open(&target, path), STOKER_OK);
    fputs("whole", target.file);
    cr_assert_eq(bench_target_close(&target, true), STOKER_OK);
    cr_assert_eq(access(path, F_OK), 0);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(folder), 0, "something was left behind");

    cr_assert_eq(bench_target_open(&target, path), STOKER_EINVAL); /* no such folder now */
}
