/* run.h - pack a source into a target. */
#ifndef PACK_RUN_H
#define PACK_RUN_H

#include "datasets/pack/arguments.h"

enum {
    PACK_GOOD = 0,
    PACK_FAILED = 1,
    PACK_USAGE = 2,
    PACK_LEFT_OUT = 3, /* bad samples were reported, all others packed */
    PACK_NOT_VERIFIED = 4
};

/* Pack, optionally verify, and print the report. Returns the exit status; of several ranks, each
 * reports its own shards. */
int pack_run(const struct pack_arguments *arguments);

#endif
