/* progress.h - one line on a terminal: how far, how fast, how long still. */
#ifndef PACK_PROGRESS_H
#define PACK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct pack_progress {
    bool shown; /* standard error is a terminal, and nobody asked for quiet */
    const char *what;
    uint64_t count;    /* samples at the end */
    uint64_t begun_at; /* samples done at the start */
    uint64_t begun_ns;
    uint64_t drawn_ns;
};

uint64_t pack_now_ns(void);
struct pack_progress pack_progress_begin(const char *what, uint64_t done, uint64_t count,
                                         bool quiet);
void pack_progress_show(struct pack_progress *progress, uint64_t done);
void pack_progress_end(struct pack_progress *progress); /* the line vanishes */

#endif
