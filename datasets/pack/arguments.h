/* arguments.h - the command line of stoker-pack. */
#ifndef PACK_ARGUMENTS_H
#define PACK_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum pack_form { PACK_SHARDS, PACK_FOLDER, PACK_TAR };

/* How samples are stored. KEEP: PNG and JPEG files as they are, all else as its form does. */
enum pack_codec { PACK_KEEP, PACK_RAW, PACK_LZ4, PACK_PNG, PACK_JPEG, PACK_DEFAULT };

enum pack_action { PACK_RUN, PACK_HELP, PACK_VERSION, PACK_MISUSED };

struct pack_arguments {
    enum pack_action action;
    const char *source; /* a data set's spec */
    const char *target; /* a path, without the form */
    const char *split;  /* NULL = the format's first */
    enum pack_form form;
    enum pack_codec codec;
    uint32_t quality;     /* of JPEG, 1..100; while reading 0 = not told */
    int32_t workers;      /* -1 = as many as there are CPUs */
    uint64_t shard_bytes; /* most bytes of a shard; the same */
    bool verify;
    bool quiet;
};

/* Take the words apart; MISUSED after one line on standard error. */
struct pack_arguments pack_arguments_read(int count, char **words);

const char *pack_form_name(enum pack_form form);
void pack_help(void);

#endif
