/* help.c - prints --help and --list. */
#include "bench/loaderbench/arguments.h"

#include <string.h>

static const char what_is_measured[] =
    "usage: loaderbench [options] DATASET\n"
    "\n"
    "Which settings suit this data set on this machine, and what limits them? One row\n"
    "for each combination of the lists below, a verdict, and options to paste into\n"
    "your program. DATASET is a path, or a spec:\n"
    "\n";

static const char what_is_printed[] =
    "\n"
    "Columns of the table\n"
    "  workers              threads that ran; auto:2 = the loader chose 2\n"
    "  pin                  pin_memory as asked for\n"
    "  nblk, conv           on a GPU: copied ahead; where rows got their type\n"
    "  epoch                with a cache: the first, which fills it, and the later\n"
    "                       ones, which it serves; else all\n"
    "  samples/s, +-        median of the repeats, and half of the interval in which\n"
    "                       their middle four fifths lie. Rates whose intervals\n"
    "                       overlap are not measurably different\n"
    "  s/epoch              seconds for all samples\n"
    "  of best              share of the fastest row\n"
    "  limited by           the stage that limits the loader\n"
    "with --wide also\n"
    "  GB/s                 of images delivered\n"
    "  first ms             from before create to the first batch\n"
    "  CPU s/M              processor seconds of the process per million samples\n"
    "  stall                share of the time that the consumer waited for batches\n"
    "  RSS +MB, lock MB     growth of the process; page-locked memory\n"
    "  ceiling              samples/s as a share of a bare loop doing the same work\n"
    "\n"
    "The machine counts as busy if other programs use more than a quarter of the CPUs\n"
    "meanwhile, or if half of the repeats differ by more than a fifth of the median.\n"
    "Exit status: 0 all cells measured and right, 1 a cell failed, 2 bad usage, 3\n"
    "busy and --strict, 130 interrupted: Ctrl-C writes what was measured and stops, a\n"
    "second one stops at once.\n";

/* The table of formats, "  mnist:DIR      the MNIST files ...". */
static void print_formats(FILE *file)
{
    char text[4096];
    if (stoker_dataset_formats(text, sizeof(text)) >= sizeof(text))
        text[0] = '\0';
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        const int spec = (int)strcspn(line, "\t");
        const int about = (int)strcspn(line, "\n") - spec - 1;
        fprintf(file, "  %-*.*s %.*s\n", 32, spec, line, about, line + spec + 1);
    }
    fputs("  SPEC?test=0.1&split=test         a random tenth; also seed=, stratified=1,\n"
          "                                   weighted=balanced\n",
          file);
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

void bench_arguments_help(FILE *file)
{
    const struct cli_table table = bench_option_table();
    fputs(what_is_measured, file);
    print_formats(file);
    cli_print_options(file, &table, describe_default);
    fputs(what_is_printed, file);
}

void bench_arguments_list(FILE *file)
{
    fputs("data sets\n", file);
    print_formats(file);
    fputs("ceilings\n"
          "  gather             copy and convert random rows from memory into a\n"
          "                     ring as large as the cell's\n"
          "  decode             run the codec on samples in memory, and convert\n"
          "  transform          crop, flip, resize and convert images in memory\n"
          "  decode + transform the same, decoded before\n"
          "  bare io_uring      the same random reads through bare rings\n"
          "  bare pread         the same reads by plain system calls; of whole\n"
          "                     files with open and close\n"
          "  parts in turn      read, decode and convert, measured alone, their\n"
          "                     times added\n"
          "  pinned to GPU      copies as large as the cell's from page-locked memory\n"
          "  pageable to GPU    the same from ordinary memory\n"
          "  memcpy             bytes of a large block, counted once\n"
          "formats\n"
          "  table, csv, json (one object a line), html (a page with charts)\n",
          file);
}
