/* arguments.c - see arguments.h. */
#include "datasets/pack/arguments.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <stoker/dataset.h>
#include <stoker/error.h>

#define QUALITY_DEFAULT 90U
#define LEVEL_DEFAULT   9U /* packed once, unpacked often: unpacking costs the same at all levels */
#define AT(field)       offsetof(struct pack_arguments, field)

enum { LEVEL_MAX_LZ4 = 12, LEVEL_MAX = 19 };

static const struct cli_word codecs[] = {
    { "keep", PACK_KEEP }, { "raw", PACK_RAW },   { "lz4", PACK_LZ4 }, { "png", PACK_PNG },
    { "jpeg", PACK_JPEG }, { "zstd", PACK_ZSTD }, { NULL, 0 }
};
static const char *const form_names[] = { "shards", "folder", "tar" };

static const struct cli_option rows[] = {
    { .help = "Packing" },
    { "codec", 0, CLI_WORD, AT(codec), 0, 0, "NAME", codecs,
      .help = "keep: image files as they are, all else raw in shards and PNG elsewhere; "
              "raw: rows; lz4, zstd: compressed rows, raw if that is smaller; "
              "png: lossless; jpeg: lossy. raw, lz4 and zstd go with shards only",
      .unset = "keep for shards, png for folder and tar" },
    { "baseline", 0, CLI_FLAG, AT(baseline), 0, 0, NULL, NULL,
      .help = "of --codec keep: write progressive JPEG files as baseline ones, with the same "
              "coefficients: decoded in a third of the time, some 5 % longer" },
    { "quality", 0, CLI_COUNT32, AT(quality), 1, 100, "N", NULL, .help = "of --codec jpeg",
      .unset = "90" },
    { "level", 0, CLI_COUNT32, AT(level), 1, LEVEL_MAX, "N", NULL,
      .help = "of --codec lz4, 1 to 12, or zstd, 1 to 19, or of --block: a higher one packs slower "
              "and smaller",
      .unset = "9" },
    { "workers", 0, CLI_COUNT32, AT(workers), 1, 256, "N", NULL,
      .help = "threads that read and encode", .unset = "one per CPU" },
    { "shard-samples", 0, CLI_COUNT64, AT(shard_samples), 1, 0x1p53, "N", NULL,
      .help = "samples of SOURCE in each shard but the last", .unset = "256 MiB of rows" },
    { "block", 0, CLI_BYTES, AT(block_bytes), 4096, 1 << 30, "BYTES", NULL,
      .help = "of shards: compress samples together, in blocks of that many bytes, with zstd, or "
              "with lz4 if that is --codec; smaller than records compressed one by one, and read "
              "block by block",
      .unset = "no blocks" },
    { "split", 0, CLI_TEXT, AT(split), 0, 0, "NAME", NULL, .help = "the part of SOURCE to pack",
      .unset = "its first" },
    { "verify", 0, CLI_FLAG, AT(verify), 0, 0, NULL, NULL,
      .help = "open TARGET afterwards and compare each field with SOURCE" },
    { "quiet", 0, CLI_FLAG, AT(quiet), 0, 0, NULL, NULL, .help = "no progress, no report" },
    CLI_HELP_ROW(AT(help)),
    { "version", 0, CLI_STOP, AT(action), PACK_VERSION, 0, NULL, NULL,
      .help = "the version of the tool and of the library" },
};
static_assert(sizeof(rows) / sizeof(rows[0]) <= CLI_OPTIONS_MAX, "the rows that a line has");
static const struct cli_table table = { .rows = rows, .count = sizeof(rows) / sizeof(rows[0]) };
static const struct pack_arguments defaults = { .codec = PACK_DEFAULT, .workers = -1 };

const char *pack_form_name(enum pack_form form)
{
    return form_names[form];
}

static void describe_default(char text[2 * CLI_DEFAULT_BYTES + 40], const struct cli_option *row)
{
    cli_default(text, row, &defaults);
}

void pack_help(enum cli_form form)
{
    const struct cli_page page = {
        .name = "stoker-pack",
        .about = "pack a data set for fast loading",
        .operands = "SOURCE TARGET",
        .before =
            "Read a data set and write it in another form.\n"
            "\n"
            "SOURCE is a data set: mnist:DIR, folder:DIR, csv:FILE?label=COLUMN, ...; "
            "loaderbench --list names all.\n"
            "TARGET is one of\n"
            "shards:DIR\tlarge files of checked records; continues an interrupted run\n"
            "folder:DIR\timage files, one folder per class; continues an interrupted run\n"
            "tar:FILE\timage files and class numbers, in the layout of WebDataset\n"
            "\n"
            "Samples of several fields become a folder per field, or members per field: images as "
            "files, arrays as .npy, bytes as .txt, .json or .bin.\n"
            "\n"
            "Started by mpirun, srun or torchrun, rank r of w writes shards r, r + w, ... of one "
            "shards:DIR: the same bytes with any number of ranks, and resumable with another. Each "
            "rank reports its own shards.\n",
        .after = "# Exit status\n"
                 "0\tall samples packed\n"
                 "1\tfailed\n"
                 "2\tbad usage\n"
                 "3\tall but bad samples packed\n"
                 "4\t--verify found a difference\n",
        .table = table,
        .describe_default = describe_default,
        .formats = stoker_dataset_formats,
    };
    cli_print_page(stdout, &page, form);
}

__attribute__((format(printf, 2, 3))) static bool misused(struct pack_arguments *arguments,
                                                          const char *format, ...)
{
    char message[CLI_MESSAGE_BYTES];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    (void)fprintf(stderr, "stoker-pack: %s; try --help\n", message);
    arguments->action = PACK_MISUSED;
    return false;
}

static bool read_target(struct pack_arguments *arguments, const char *word)
{
    for (size_t i = 0; i < sizeof(form_names) / sizeof(form_names[0]); i++) {
        const size_t length = strlen(form_names[i]);
        if (strncmp(word, form_names[i], length) == 0 && word[length] == ':' &&
            word[length + 1] != '\0') {
            arguments->form = (enum pack_form)i;
            arguments->target = word + length + 1;
            return true;
        }
    }
    return misused(arguments, "the target '%.80s' is not shards:DIR, folder:DIR or tar:FILE", word);
}

static bool packs_rows(enum pack_codec codec)
{
    return codec == PACK_LZ4 || codec == PACK_ZSTD;
}

/* What depends on the target: the default, and what it can hold. */
static bool settle_codec(struct pack_arguments *arguments)
{
    const bool shards = arguments->form == PACK_SHARDS;
    if (arguments->codec == PACK_DEFAULT)
        arguments->codec = shards ? PACK_KEEP : PACK_PNG;
    if (!shards && (arguments->codec == PACK_RAW || packs_rows(arguments->codec)))
        return misused(arguments, "--codec %s goes with shards only",
                       codecs[arguments->codec].text);
    return true;
}

/* Refuses a number that has no effect; one that was not given gets its default. */
static bool settle_numbers(struct pack_arguments *arguments)
{
    if (arguments->quality != 0 && arguments->codec != PACK_JPEG)
        return misused(arguments, "--quality goes with --codec jpeg, and this is %s",
                       codecs[arguments->codec].text);
    if (arguments->baseline && arguments->codec != PACK_KEEP)
        return misused(arguments, "--baseline goes with --codec keep, and this is %s",
                       codecs[arguments->codec].text);
    if (arguments->block_bytes != 0 && arguments->form != PACK_SHARDS)
        return misused(arguments, "--block goes with shards, and the target is %s",
                       form_names[arguments->form]);
    if (arguments->level != 0 && arguments->block_bytes == 0 && !packs_rows(arguments->codec))
        return misused(arguments, "--level goes with --codec lz4 or zstd, and this is %s",
                       codecs[arguments->codec].text);
    if (arguments->level > LEVEL_MAX_LZ4 && arguments->codec == PACK_LZ4)
        return misused(arguments, "--level %u: LZ4 has levels 1 to %d", arguments->level,
                       LEVEL_MAX_LZ4);
    if (arguments->shard_samples != 0 && arguments->form != PACK_SHARDS)
        return misused(arguments, "--shard-samples goes with shards, and the target is %s",
                       form_names[arguments->form]);
    if (arguments->quality == 0)
        arguments->quality = QUALITY_DEFAULT;
    if (arguments->level == 0)
        arguments->level = LEVEL_DEFAULT;
    return true;
}

struct pack_arguments pack_arguments_read(int count, char **words)
{
    struct pack_arguments arguments = defaults;
    char wrong[CLI_MESSAGE_BYTES] = "";
    struct cli_given given = { 0 };
    if (cli_read_early(&table, &arguments, count, words))
        return arguments;
    if (cli_read(&table, &arguments, &given, count, words, wrong) != STOKER_OK) {
        (void)misused(&arguments, "%s", wrong);
        return arguments;
    }
    if (count - optind != 2) {
        (void)misused(&arguments, "a source and a target are needed, %d words are given",
                      count - optind);
        return arguments;
    }
    arguments.source = words[optind];
    if (read_target(&arguments, words[optind + 1]) && settle_codec(&arguments))
        (void)settle_numbers(&arguments);
    return arguments;
}
