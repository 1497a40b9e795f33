/* verify.h - checks that every delivered sample is the right one, to the last byte.
 *
 * Ids must form the epoch, each once; rows must be what stoker_dataset_read() and the
 * plain conversion make of that id; labels likewise. A fast wrong answer is a failure.
 */
#ifndef BENCH_CELL_VERIFY_H
#define BENCH_CELL_VERIFY_H

#include "bench/loaderbench/transform.h"
#include "kernels/convert/convert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/stoker.h>

enum { BENCH_VERIFY_SAMPLES_MAX = 1 << 20 };
static const uint64_t BENCH_VERIFY_BYTES_MAX = (uint64_t)2 << 30;

struct bench_verify {
    const stoker_dataset *dataset;
    const struct stk_convert_plan *plan;
    struct bench_transform *transform; /* NULL = rows are only converted */
    bool rows;                         /* compare the bytes, not only the ids */
    uint64_t limit;                    /* samples to check, from the start of the epoch */
    uint64_t checked;
    uint64_t *ids; /* [limit] delivered so far */
    void *stored;
    void *expected;
    char message[256]; /* the first error; "" = none */
};

/* Checks the whole epoch, or as many of its first samples as the limits above allow. */
int bench_verify_create(struct bench_verify *out, const stoker_dataset *dataset,
                        const struct stk_convert_plan *plan, bool rows);
/* Checks against transformed rows. transform must outlive verify. STOKER_ENOMEM. */
int bench_verify_transformed(struct bench_verify *verify, struct bench_transform *transform);
void bench_verify_destroy(struct bench_verify *verify);

/* Checks one batch. False: message has the error. Ignores samples past limit. */
bool bench_verify_batch(struct bench_verify *verify, const stoker_batch *batch);

/* After the epoch, or once limit is reached: true if every id came exactly once. */
bool bench_verify_ids(struct bench_verify *verify);

#endif
