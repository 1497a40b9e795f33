/* progress.h - progress, speed and remaining time of a pass over the samples. */
#ifndef PACK_PROGRESS_H
#define PACK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/cli/progress_line.h"

struct pack_progress {
    struct cli_progress_line line;
    const char *what;  /* "packed" */
    uint64_t count;    /* samples at the end */
    uint64_t begun_at; /* samples done at the start */
    uint64_t begun_ns;
};

struct pack_progress pack_progress_begin(const char *what, uint64_t done, uint64_t count,
                                         bool quiet);
void pack_progress_show(struct pack_progress *progress, uint64_t done);

#endif
