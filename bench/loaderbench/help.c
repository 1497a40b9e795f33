/* help.c - prints --help and --list. */
#include "bench/loaderbench/arguments.h"

#include <string.h>

enum { TEXT_BYTES = 8192 };

static const char what_is_measured[] =
    "Which settings suit this data set on this machine, and what limits them? One row for each "
    "combination of the lists below, a verdict, and options to paste into your program. DATASET "
    "is a path, or a spec:\n"
    "\n";

static const char what_is_printed[] =
    "# Columns of the table\n"
    "workers\tthreads that ran; auto:2 = the loader chose 2\n"
    "pin\tpin_memory as asked for\n"
    "nblk, conv\ton a GPU: copied ahead; where rows got their type\n"
    "epoch\twith a cache: the first, which fills it, and the later ones, which it serves; else "
    "all\n"
    "samples/s, +-\tmedian of the repeats, and half of the interval in which their middle four "
    "fifths lie. Rates whose intervals overlap are not measurably different\n"
    "s/epoch\tseconds for all samples\n"
    "of best\tshare of the fastest row\n"
    "limited by\tthe stage that limits the loader\n"
    "\n"
    "# More columns, with --wide\n"
    "GB/s\tof images delivered\n"
    "first ms\tfrom before create to the first batch\n"
    "CPU s/M\tprocessor seconds of the process per million samples\n"
    "stall\tshare of the time that the consumer waited for batches\n"
    "RSS +MB, lock MB\tgrowth of the process; page-locked memory\n"
    "ceiling\tsamples/s as a share of a bare loop doing the same work\n"
    "\n"
    "# Busy machine\n"
    "The machine counts as busy if other programs use more than a quarter of the CPUs meanwhile, "
    "or if half of the repeats differ by more than a fifth of the median.\n"
    "\n"
    "# Exit status\n"
    "0\tall cells measured and right\n"
    "1\ta cell failed\n"
    "2\tbad usage\n"
    "3\tbusy and --strict\n"
    "130\tinterrupted: Ctrl-C writes what was measured and stops, a second one stops at once\n";

static const char what_can_be_measured[] =
    "# ceilings\n"
    "gather\tcopy and convert random rows from memory into a ring as large as the cell's\n"
    "decode\trun the codec on samples in memory, and convert\n"
    "transform\tcrop, flip, resize and convert images in memory\n"
    "decode + transform\tthe same, decoded before\n"
    "bare io_uring\tthe same random reads through bare rings\n"
    "bare pread\tthe same reads by plain system calls; of whole files with open and close\n"
    "parts in turn\tread, decode and convert, measured alone, their times added\n"
    "pinned to GPU\tcopies as large as the cell's from page-locked memory\n"
    "pageable to GPU\tthe same from ordinary memory\n"
    "memcpy\tbytes of a large block, counted once\n"
    "# formats\n"
    "table, csv, json (one object a line), html (a page with charts)\n";

/* Writes `before` and the table of formats. */
static void write_formats(char text[TEXT_BYTES], const char *before)
{
    static const char part[] = "SPEC?test=0.1&split=test\ta random tenth; also seed=, "
                               "stratified=1, weighted=balanced\n";
    char formats[TEXT_BYTES / 2];
    if (stoker_dataset_formats(formats, sizeof(formats)) >= sizeof(formats))
        formats[0] = '\0';
    (void)snprintf(text, TEXT_BYTES, "%s%s%s", before, formats, part);
}

static void describe_default(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    struct bench_arguments defaults;
    bench_arguments_defaults(&defaults, 1);
    if (row->unset != NULL)
        (void)snprintf(text, CLI_DEFAULT_BYTES, "%s", row->unset);
    else
        cli_default(text, row, &defaults);
}

void bench_arguments_help(FILE *file, enum cli_form form)
{
    char before[TEXT_BYTES];
    const struct cli_page page = {
        .name = "loaderbench",
        .about = "measure how fast a data set can be loaded, and what limits it",
        .operands = "DATASET",
        .before = before,
        .after = what_is_printed,
        .table = bench_option_table(),
        .describe_default = describe_default,
        .formats = stoker_dataset_formats,
    };
    write_formats(before, what_is_measured);
    cli_print_page(file, &page, form);
}

void bench_arguments_list(FILE *file)
{
    char text[TEXT_BYTES];
    write_formats(text, "# data sets\n");
    cli_print_text(file, text);
    cli_print_text(file, what_can_be_measured);
}
