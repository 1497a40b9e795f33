/* arguments.h - the command line of stoker-pack. */
#ifndef PACK_ARGUMENTS_H
#define PACK_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/cli/options.h"

enum pack_form { PACK_SHARDS, PACK_FOLDER, PACK_TAR };

/* How samples are stored. KEEP: image files as they are, all else as the form stores it. */
enum pack_codec { PACK_KEEP, PACK_RAW, PACK_LZ4, PACK_PNG, PACK_JPEG, PACK_ZSTD, PACK_DEFAULT };

enum pack_action { PACK_RUN, PACK_VERSION, PACK_MISUSED };

struct pack_arguments {
    enum pack_action action;
    enum cli_form help;
    const char *source; /* a data set's spec */
    const char *target; /* a path, without the form */
    const char *split;  /* NULL = the format's first */
    enum pack_form form;
    enum pack_codec codec;
    bool baseline;          /* KEEP: progressive JPEG files become baseline */
    uint32_t quality;       /* JPEG, 1..100 */
    uint32_t level;         /* LZ4, 1..12; Zstandard, 1..19 */
    int32_t workers;        /* -1 = one per CPU */
    uint64_t shard_samples; /* samples of a shard; 0 = about 256 MiB of rows */
    uint64_t block_bytes;   /* of blocks of samples that are compressed together; 0 = none */
    bool verify;
    bool quiet;
};

/* Reads the command line. MISUSED: standard error has one line that says why. */
struct pack_arguments pack_arguments_read(int count, char **words);

const char *pack_form_name(enum pack_form form);
void pack_help(enum cli_form form);

#endif
