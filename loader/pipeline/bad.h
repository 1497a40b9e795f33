/* bad.h - what happens to a sample that cannot be delivered.
 *
 * Workers note a failed row in its slot; the consumer files the notes when it delivers
 * the batch. So counts, reports and the place where a run ends follow the order of the
 * batches, whatever the number of workers.
 *
 * A sample that is bad in each epoch is one bad sample: what is filed is counted and
 * reported once for each sample. The ids are kept as long as there is something to count.
 */
#ifndef STK_PIPELINE_BAD_H
#define STK_PIPELINE_BAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>

enum { STK_BAD_REPORTS_MAX = 1024, STK_SUBSTITUTES_MAX = 32, STK_DETAIL_BYTES = 64 };

/* The note about one row: small, since every row of every slot has room for one. */
struct stk_failure {
    uint64_t sample;
    uint64_t offset;
    const char *path; /* the data set's; NULL = none */
    int32_t code;
    int32_t os_errno;
    uint32_t stage;
    char detail[STK_DETAIL_BYTES]; /* what the codec or data set said; "" = nothing */
};

struct stk_bad {
    stoker_on_bad policy;
    uint64_t max_samples;   /* 0 = no limit */
    pthread_mutex_t lock;   /* guards all below: filed by the consumer, read by anyone */
    uint64_t count;         /* distinct samples */
    stoker_error *reports;  /* of the first STK_BAD_REPORTS_MAX; NULL with FAIL */
    uint64_t *seen;         /* their ids: open addressing, at most half full; NULL with FAIL */
    uint64_t seen_capacity; /* a power of two */
};

/* 0 or STOKER_ENOMEM. */
int stk_bad_init(struct stk_bad *bad, stoker_on_bad policy, uint64_t max_samples);
void stk_bad_destroy(struct stk_bad *bad); /* only after a successful init */

/* File one report, unless the sample has one. 0; STOKER_EBADSAMPLES if that was one too many;
 * STOKER_ENOMEM. */
int stk_bad_file(struct stk_bad *bad, const stoker_error *report);

/* Copy report number `index`; false past the last. Any thread. */
bool stk_bad_report(struct stk_bad *bad, uint64_t index, stoker_error *out);

/* The sample that stands in for the one at a position, at the attempt 0, 1, ...:
 * a pure function, so that every run substitutes alike. */
uint64_t stk_bad_substitute(uint64_t seed, uint64_t epoch, uint64_t position, uint32_t attempt,
                            uint64_t count);

#endif
