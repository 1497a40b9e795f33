/* help.c - prints --help and --list. */
#include "bench/loaderbench/arguments.h"
static const char what_is_measured[] =
    "usage: loaderbench [options] DATASET\n"
    "\n"
    "Measure the loader on DATASET: one row for each combination of the lists below,\n"
    "then the ceilings of this machine, then the options to paste into your program.\n"
    "\n"
    "DATASET is mnist:DIR, idx:IMAGES[,LABELS], cifar:DIR, folder:DIR, tar:FILE,\n"
    "shards:DIR, npy:IMAGES[,LABELS], csv:FILE, synth:digits?count=60000, or a path;\n"
    "--list describes them.\n";

static const char what_is_printed[] =
    "\n"
    "Columns of the table\n"
    "  workers              threads that ran; auto:2 = the loader chose 2\n"
    "  pin                  pin_memory as asked for\n"
    "  nblk, conv           on a GPU: copied ahead; where rows got their type\n"
    "  epochs               with a cache: the first, which fills it, and the later\n"
    "                       ones, which it serves; else all\n"
    "  samples/s, spread    median of the repeats; (largest - smallest) / median\n"
    "  GB/s                 of images delivered\n"
    "  first ms             from before create to the first batch\n"
    "  CPU s/M              processor seconds of the process per million samples\n"
    "  stall                share of the time that the consumer waited for batches\n"
    "  RSS +MB, lock MB     growth of the process; page-locked memory\n"
    "  limit                the stage that limits the loader\n"
    "  ceiling              samples/s as a share of a bare loop doing the same work\n"
    "\n"
    "Exit status: 0 all cells measured and right, 1 a cell failed, 2 bad usage, 130\n"
    "interrupted: Ctrl-C writes what was measured and stops, a second one stops at\n"
    "once.\n";

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
    cli_print_options(file, &table, describe_default);
    fputs(what_is_printed, file);
}

void bench_arguments_list(FILE *file)
{
    fputs("data sets\n"
          "  mnist:DIR                        the MNIST files in DIR, packed or not\n"
          "  idx:IMAGES[,LABELS]              one IDX file, read in place\n"
          "  synth:digits?count=N             drawn digits\n"
          "  synth:bytes?count=N&shape=28x28  noise, for any size\n"
          "  synth:pictures?count=N           made-up photographs\n"
          "  folder:DIR                       image files, a folder for each class\n"
          "  tar:FILE                         image files in archives, as of WebDataset\n"
          "  shards:DIR                       records that stoker-pack wrote\n"
          "  npy:IMAGES[,LABELS]              arrays of NumPy, read in place\n"
          "  csv:FILE                         numbers, a line a sample\n"
          "  cifar:DIR                        CIFAR-10 and CIFAR-100, the binary version\n"
          "  concat:(SPEC)+(SPEC)             several, one after the other\n"
          "  select:FILE:(SPEC)               the samples whose numbers FILE lists\n"
          "  mix:0.7*(SPEC)+0.3*(SPEC)        several, each with its share of the order\n"
          "  SPEC?test=0.1&split=test         a random tenth; also seed=, stratified=1,\n"
          "                                   weighted=balanced\n"
          "ceilings\n"
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
