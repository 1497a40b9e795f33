/* thread_stuck.c - a read that comes back after destroy has given up, and after the data set was closed, finds
 * all that it needs: file, codec, and the set itself.
 *
 *   worker   submit ─▶ reap: waits for the gate ─────────────────────────────▶ verify, decode ─▶ close, gone
 *   main                   destroy: waits 6 s, goes on ─▶ close ─▶ the gate opens
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <stoker/stoker.h>

#include "one_file_set.h"
#include "thread_check.h"

enum { ROW_BYTES = STK_ONE_FILE_ROW_BYTES, READS_MAX = 64 };

/* ---- a set whose codec looks at memory of the set ---- */

struct set {
    struct stk_one_file_set file; /* first: its functions take it for the set */
    stoker_codec codec;
    uint8_t mask[ROW_BYTES];
};

static _Atomic bool closed_set;
static _Atomic uint32_t decoded;

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    const struct set *set = self;
    const uint8_t *from = in->bytes;
    uint8_t *to = row;
    (void)scratch;
    (void)error;
    CHECK(!closed_set);
    for (size_t i = 0; i < row_bytes; i++)
        to[i] = from[i] ^ set->mask[i];
    atomic_fetch_add(&decoded, 1U);
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_sample *out,
                  stoker_error *error)
{
    CHECK(!closed_set);
    return stk_one_file_locate(self, ids, count, out, error);
}

static void free_set(void *self)
{
    closed_set = true;
    free(self);
}

static const stoker_dataset_ops ops = { .name = "gated",
                                        .describe = stk_one_file_describe,
                                        .locate = locate,
                                        .file = stk_one_file_file,
                                        .destroy = free_set };

/* ---- a reader whose reap is stuck until the gate opens ---- */

struct ring {
    stoker_read *reads[READS_MAX];
    uint32_t count;
};

static _Atomic bool stuck, gate_open, ring_closed;

static void sleep_ms(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static int open_ring(void **ring, const stoker_reader_setup *setup, stoker_error *error)
{
    (void)error;
    CHECK(setup->depth <= READS_MAX);
    *ring = calloc(1, sizeof(struct ring));
    return *ring == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static int submit(void *self, stoker_read *const *reads, uint32_t count)
{
    struct ring *ring = self;
    for (uint32_t i = 0; i < count; i++)
        ring->reads[ring->count++] = reads[i];
    return STOKER_OK;
}

static int reap(void *self, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct ring *ring = self;
    uint32_t count = 0;
    (void)wait_ns;
    for (stuck = true; !gate_open;)
        sleep_ms();
    for (; ring->count > 0 && count < max; count++) {
        done[count] = ring->reads[--ring->count];
        memset(done[count]->buffer, 0, done[count]->bytes);
        done[count]->result = (int32_t)done[count]->bytes;
    }
    return (int)count;
}

static int close_ring(void *ring, int64_t wait_ns)
{
    (void)wait_ns;
    free(ring);
    ring_closed = true;
    return STOKER_OK;
}

static const stoker_reader gated = {
    .name = "gated", .open = open_ring, .submit = submit, .reap = reap, .close = close_ring
};

/* ---- */

static stoker_loader *kept; /* what is left behind stays within the leak checker's sight */

int main(void)
{
    struct set *set = calloc(1, sizeof(*set));
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch;
    CHECK(set != NULL);
    set->codec = (stoker_codec){ .name = "mask", .self = set, .decode = decode };
    set->file = (struct stk_one_file_set){ .path = "gate", .fd = -1, .codec = &set->codec };
    CHECK(stoker_dataset_create(&dataset, &ops, set) == STOKER_OK);
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.num_workers = 1;
    options.batch_size = 4;
    options.read_depth = READS_MAX;
    options.timeout_ms = 10;
    options.cache = STOKER_CACHE_NONE;
    options.reader = &gated;
    CHECK(stoker_loader_create(&loader, dataset, &options) == STOKER_OK);
    kept = loader;
    CHECK(stoker_loader_next(loader, &batch) == STOKER_ETIMEDOUT);
    while (!stuck)
        sleep_ms();
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    CHECK(loader == NULL && dataset == NULL && kept != NULL);
    gate_open = true;
    while (!ring_closed)
        sleep_ms();
    CHECK(decoded > 0); /* it went on with what it had */
    return 0;
}
