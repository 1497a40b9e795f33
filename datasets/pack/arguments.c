/* arguments.c - see arguments.h. */
#include "datasets/pack/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cli/option_fault.h"
#include "loader/base/nearest.h"

#define QUALITY_DEFAULT     90U
#define SHARD_BYTES_DEFAULT ((uint64_t)256 << 20)
#define SHARD_BYTES_MIN     ((uint64_t)16 << 10)
#define SHARD_BYTES_MAX     ((uint64_t)1 << 44)

static const char *const codec_names[] = { "keep", "raw", "lz4", "png", "jpeg" };
static const char *const form_names[] = { "shards", "folder", "tar" };

const char *pack_form_name(enum pack_form form)
{
    return form_names[form];
}

void pack_help(void)
{
    (void)puts(
        "usage: stoker-pack [OPTION...] SOURCE TARGET\n"
        "\n"
        "Read a data set through the loader and write it anew.\n"
        "\n"
        "SOURCE is a data set: mnist:DIR, folder:DIR, shards:DIR, csv:FILE?label=COLUMN, ...\n"
        "TARGET is one of\n"
        "  shards:DIR     large files of checked records; packing that was stopped goes on\n"
        "  folder:DIR     image files, a class a folder; packing that was stopped goes on\n"
        "  tar:FILE       image files and class numbers, as WebDataset has them\n"
        "\n"
        "  --codec C      keep   PNG and JPEG files as they are, all else raw in shards and PNG\n"
        "                        elsewhere (default of shards)\n"
        "                 raw    rows; shards only\n"
        "                 lz4    rows packed, but those that grow; shards only\n"
        "                 png    lossless (default of folder and tar)\n"
        "                 jpeg   with loss\n"
        "  --quality Q    of --codec jpeg, 1..100 (default 90)\n"
        "  --workers N    threads that read and threads that pack, 1..256 (default: one a CPU)\n"
        "  --shard-bytes N[K|M|G]\n"
        "                 most bytes of a shard, 16K at least (default 256M)\n"
        "  --split NAME   the part of SOURCE that is packed (default: its first)\n"
        "  --verify       open TARGET afterwards and compare each row and label with SOURCE\n"
        "  --quiet        no progress, no report\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 all is packed, 1 it failed, 2 bad usage, 3 all but bad samples is packed,\n"
        "4 --verify found a difference.");
}

static bool misused(struct pack_arguments *arguments, const char *what, const char *word)
{
    (void)fprintf(stderr, "stoker-pack: %s: %s; try --help\n", what, word);
    arguments->action = PACK_MISUSED;
    return false;
}

/* A number, perhaps with K, M or G behind it. */
static bool read_number(const char *word, bool sizes, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    if (word[0] < '0' || word[0] > '9')
        return false;
    unsigned long long number = strtoull(word, &end, 10);
    unsigned shift = 0;
    if (sizes && end[0] != '\0' && end[1] == '\0') {
        const char *const letters = "KMG";
        const char *letter = strchr(letters, end[0]);
        if (letter == NULL)
            return false;
        shift = 10U * (unsigned)(letter - letters + 1);
        end++;
    }
    if (errno != 0 || end[0] != '\0' || number > most >> shift || number << shift < least)
        return false;
    *out = (uint64_t)number << shift;
    return true;
}

static bool read_codec(const char *word, enum pack_codec *out)
{
    for (size_t i = 0; i < sizeof(codec_names) / sizeof(codec_names[0]); i++) {
        if (strcmp(word, codec_names[i]) == 0) {
            *out = (enum pack_codec)i;
            return true;
        }
    }
    return false;
}

/* Not one of the codecs: which there are, and which is near. */
static bool misspelt_codec(struct pack_arguments *arguments, const char *word)
{
    char question[STK_NEAREST_BYTES];
    struct stk_nearest nearest = stk_nearest_to(word, strlen(word));
    for (size_t i = 0; i < sizeof(codec_names) / sizeof(codec_names[0]); i++)
        stk_nearest_try(&nearest, codec_names[i], codec_names[i]);
    (void)fprintf(stderr,
                  "stoker-pack: --codec: '%.60s' is not one of keep, raw, lz4, png, jpeg%s; try "
                  "--help\n",
                  word, stk_nearest_question(question, &nearest, ""));
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
    return misused(arguments, "the target is shards:DIR, folder:DIR or tar:FILE", word);
}

/* What depends on the target: the default, and what it can hold. */
static bool settle_codec(struct pack_arguments *arguments)
{
    const bool shards = arguments->form == PACK_SHARDS;
    if (arguments->codec == PACK_DEFAULT)
        arguments->codec = shards ? PACK_KEEP : PACK_PNG;
    if (!shards && (arguments->codec == PACK_RAW || arguments->codec == PACK_LZ4))
        return misused(arguments, "only shards hold rows of this codec",
                       codec_names[arguments->codec]);
    return true;
}

/* What is told must be of use, or it was meant otherwise; what is not told gets its default. */
static bool settle_numbers(struct pack_arguments *arguments)
{
    if (arguments->quality != 0 && arguments->codec != PACK_JPEG)
        return misused(arguments, "--quality is of --codec jpeg, and this is",
                       codec_names[arguments->codec]);
    if (arguments->shard_bytes != 0 && arguments->form != PACK_SHARDS)
        return misused(arguments, "--shard-bytes is of shards, and this is",
                       form_names[arguments->form]);
    if (arguments->quality == 0)
        arguments->quality = QUALITY_DEFAULT;
    if (arguments->shard_bytes == 0)
        arguments->shard_bytes = SHARD_BYTES_DEFAULT;
    return true;
}

static bool read_option(struct pack_arguments *arguments, int option, const char *word)
{
    uint64_t number = 0;
    switch (option) {
    case 'c':
        return read_codec(word, &arguments->codec) || misspelt_codec(arguments, word);
    case 'q':
        if (!read_number(word, false, 1, 100, &number))
            return misused(arguments, "--quality is 1..100", word);
        arguments->quality = (uint32_t)number;
        return true;
    case 'w':
        if (!read_number(word, false, 1, 256, &number))
            return misused(arguments, "--workers is 1..256", word);
        arguments->workers = (int32_t)number;
        return true;
    case 's':
        return read_number(word, true, SHARD_BYTES_MIN, SHARD_BYTES_MAX, &arguments->shard_bytes) ||
               misused(arguments, "--shard-bytes is 16K..16384G", word);
    case 'p':
        arguments->split = word;
        return true;
    case 'v':
        arguments->verify = true;
        return true;
    case 'Q':
        arguments->quiet = true;
        return true;
    case 'h':
    case 'V':
        arguments->action = option == 'h' ? PACK_HELP : PACK_VERSION;
        return true;
    default:
        return false;
    }
}

struct pack_arguments pack_arguments_read(int count, char **words)
{
    static const struct option options[] = { { "codec", required_argument, NULL, 'c' },
                                             { "quality", required_argument, NULL, 'q' },
                                             { "workers", required_argument, NULL, 'w' },
                                             { "shard-bytes", required_argument, NULL, 's' },
                                             { "split", required_argument, NULL, 'p' },
                                             { "verify", no_argument, NULL, 'v' },
                                             { "quiet", no_argument, NULL, 'Q' },
                                             { "help", no_argument, NULL, 'h' },
                                             { "version", no_argument, NULL, 'V' },
                                             { NULL, 0, NULL, 0 } };
    struct pack_arguments arguments = { .codec = PACK_DEFAULT, .workers = -1 };
    int option;
    opterr = 0;
    while ((option = getopt_long(count, words, ":", options, NULL)) != -1) {
        if (option == '?' || option == ':') {
            char fault[256];
            cli_option_fault(fault, sizeof(fault), option, words, options);
            (void)fprintf(stderr, "stoker-pack: %s; try --help\n", fault);
            arguments.action = PACK_MISUSED;
            return arguments;
        }
        if (!read_option(&arguments, option, optarg) || arguments.action != PACK_RUN)
            return arguments;
    }
    if (count - optind != 2) {
        (void)misused(&arguments, "a source and a target are needed",
                      count - optind > 2 ? words[optind + 2] : "too few words");
        return arguments;
    }
    arguments.source = words[optind];
    if (read_target(&arguments, words[optind + 1]) && settle_codec(&arguments))
        (void)settle_numbers(&arguments);
    return arguments;
}
