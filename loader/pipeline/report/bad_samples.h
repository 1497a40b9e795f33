/* bad_samples.h - counts and reports the samples that cannot be delivered, and draws their
 * substitutes.
 *
 * Workers note a failed row in its slot; the consumer files the notes when it delivers the batch.
 * So counts, reports and the point where a run ends follow the order of the batches, with any
 * number of workers.
 *
 * A sample counts and is reported once, even if it is bad in every epoch. Its id is remembered for
 * that while there is a limit to count towards or a report to write.
 */
#ifndef STK_PIPELINE_BAD_SAMPLES_H
#define STK_PIPELINE_BAD_SAMPLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>

#include "loader/base/error.h"

enum { STK_BAD_REPORTS_MAX = 1024, STK_SUBSTITUTES_MAX = 32, STK_DETAIL_BYTES = STK_LINE_BYTES };

/* The note about one row. Every row of every slot has room for one, which takes memory once it is
 * used. */
struct stk_failure {
    uint64_t sample;
    uint64_t offset;
    const char *path; /* owned by the data set; NULL = none */
    int32_t code;
    int32_t os_errno;
    uint32_t stage;
    char detail[STK_DETAIL_BYTES]; /* the message of the codec or data set; "" = none */
};

struct stk_bad_samples {
    stoker_on_bad policy;
    uint64_t max_samples;   /* or STOKER_NO_LIMIT */
    pthread_mutex_t lock;   /* guards all below: the consumer files, any thread reads */
    uint64_t count;         /* distinct samples */
    stoker_error *reports;  /* the first STK_BAD_REPORTS_MAX; NULL with FAIL */
    uint64_t *seen;         /* their ids: open addressing, at most half full; NULL with FAIL */
    uint64_t seen_capacity; /* a power of two; half of it is room for reports, too */
};

/* 0 or STOKER_ENOMEM. */
int stk_bad_samples_init(struct stk_bad_samples *bad, stoker_on_bad policy, uint64_t max_samples);
void stk_bad_samples_destroy(struct stk_bad_samples *bad); /* only after a successful init */

/* File a report, unless its sample has one. Returns 0, STOKER_EBADSAMPLES if the limit is exceeded,
 * or STOKER_ENOMEM. */
int stk_bad_samples_file(struct stk_bad_samples *bad, const stoker_error *report);

/* Copy report `index`; returns false past the last one. Any thread. */
bool stk_bad_samples_report(struct stk_bad_samples *bad, uint64_t index, stoker_error *out);

/* The substitute for the sample at a position, at attempt 0, 1, ...: a pure function, so every run
 * draws the same. */
uint64_t stk_bad_samples_substitute(uint64_t seed, uint64_t epoch, uint64_t position,
                                    uint32_t attempt, uint64_t count);

#endif
