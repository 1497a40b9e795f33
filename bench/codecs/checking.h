/* checking.h - a data set with the records of another, but a different check. */
#ifndef BENCH_CHECKING_H
#define BENCH_CHECKING_H

#include "bench/material/source_file.h"

enum { BENCH_CODECS_MAX = 4 };

enum bench_check {
    BENCH_CHECK_NOTHING,
    BENCH_CHECK_LOADS, /* one load from each line of 64 bytes, in the place of the checksum: whatever
                          looks at the bytes brings them to the core, so no check costs less */
    BENCH_CHECK_SUM    /* what the data set does itself */
};

/* Forwards to `of`. Must not move until the data set is closed. */
struct bench_checking {
    const stoker_dataset *of;
    const struct bench_source_file *file; /* the only one */
    enum bench_check check;
    uint32_t codec_count;
    const stoker_codec *known[BENCH_CODECS_MAX]; /* codecs of `of` */
    stoker_codec codecs[BENCH_CODECS_MAX];       /* the replacement for each */
};

/* Opens it; of and file must outlive it. STOKER_ENOTSUP unless all samples lie in that one file and
 * have few codecs. */
int bench_checking_open(stoker_dataset **out, struct bench_checking *set, const stoker_dataset *of,
                        const struct bench_source_file *file, enum bench_check check);

#endif
