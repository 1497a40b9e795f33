/* main.c - stoker-pack: convert a data set into another form.
 *
 * Exit status: see run.h, or --help.
 */
#include <stdio.h>
#include <stoker/stoker.h>

#include "datasets/pack/arguments.h"
#include "datasets/pack/run.h"

static int act(int count, char **words)
{
    const struct pack_arguments arguments = pack_arguments_read(count, words);
    switch (arguments.action) {
    case PACK_HELP:
        pack_help();
        return PACK_GOOD;
    case PACK_VERSION:
        (void)printf("stoker-pack %s, libstoker %s\n", STOKER_VERSION_STRING, stoker_version());
        return PACK_GOOD;
    case PACK_MISUSED:
        return PACK_USAGE;
    default:
        return pack_run(&arguments);
    }
}

/* A report that cannot be written is a failure. */
int main(int count, char **words)
{
    const int status = act(count, words);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    (void)fputs("stoker-pack: standard output: not all could be written\n", stderr);
    return status == PACK_GOOD ? PACK_FAILED : status;
}
