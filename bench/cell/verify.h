/* verify.h - is every delivered sample the right one, and right to the last byte?
 *
 * Ids must form the epoch, each once; rows must be what stoker_dataset_read() and the
 * plain conversion make of that id; labels likewise. A fast wrong answer is a failure.
 */
#ifndef BENCH_CELL_VERIFY_H
#define BENCH_CELL_VERIFY_H

#include "bench/transform.h"
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
    bool rows;                         /* compare the bytes too, not only the ids */
    uint64_t limit;                    /* samples to check: the epoch, or its beginning */
    uint64_t checked;
    uint64_t *ids; /* [limit] delivered so far */
    void *stored;
    void *expected;
    char message[256]; /* what is wrong; "" = nothing so far */
};

/* The whole epoch, or its first samples when that is more than the limits above. */
int bench_verify_create(struct bench_verify *out, const stoker_dataset *dataset,
                        const struct stk_convert_plan *plan, bool rows);
/* Rows are transformed as well: check against that. transform outlives verify. STOKER_ENOMEM. */
int bench_verify_transformed(struct bench_verify *verify, struct bench_transform *transform);
void bench_verify_destroy(struct bench_verify *verify);

/* Check one batch; false = message says what is wrong. Samples past limit are not looked at. */
bool bench_verify_batch(struct bench_verify *verify, const stoker_batch *batch);

/* After the epoch, or once limit is reached: does each id come once? */
bool bench_verify_ids(struct bench_verify *verify);

#endif
