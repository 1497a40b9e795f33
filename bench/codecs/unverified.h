/* unverified.h - a data set whose records are what another's are, but for their checksums. */
#ifndef BENCH_UNVERIFIED_H
#define BENCH_UNVERIFIED_H

#include "bench/source_file.h"

enum { BENCH_CODECS_MAX = 4 };

/* Hands on what `of` says. Must stay where it is until the data set is closed. */
struct bench_unverified {
    const stoker_dataset *of;
    const struct bench_source_file *file; /* its only one */
    bool verifies;                        /* after all: for the other side of a comparison */
    uint32_t codec_count;
    const stoker_codec *known[BENCH_CODECS_MAX]; /* of `of`, */
    stoker_codec codecs[BENCH_CODECS_MAX];       /* and what stands for each of them */
};

/* Open it; of and file must outlive it. STOKER_ENOTSUP unless all samples lie in that one file and
 * have few codecs. */
int bench_unverified_open(stoker_dataset **out, struct bench_unverified *set,
                          const stoker_dataset *of, const struct bench_source_file *file,
                          bool verifies);

#endif
