/* test_callbacks.c - when destroy returns, nothing of the caller's is called any more: not its
 * codec, its data set, nor its reader, however slow they are.
 *
 *   worker   locate, decode, decode ... reap ...│ the call that it is in ends │
 *   main                        destroy ────────┴─────────────────────────────┴▶ over: a call now is a fault
 */
#include <stdatomic.h>
#include <time.h>

#include <stoker/stoker.h>

#include "support/files/reader_file.h"
#include "support/thread_check.h"

enum { COUNT = 100000, ROW_BYTES = 16, SLOW_MS = 10, LAST_MS = 6500 };

static _Atomic bool over;           /* destroy has returned */
static _Atomic uint32_t calls;      /* calls of the caller's code */
static _Atomic int32_t pause_ms;    /* how long a decode or a reap takes */
static _Atomic uint32_t set_closed; /* by its destroy() */
static bool reads;                  /* samples lie in a file, which the caller's reader reads */

static void sleep_ms(int32_t ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static void note_call(void)
{
    CHECK(!over);
    atomic_fetch_add(&calls, 1U);
}

/* ---- the caller's set, codec and reader ---- */

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self;
    (void)scratch;
    (void)in;
    (void)error;
    note_call();
    sleep_ms(reads ? 0 : pause_ms);
    memset(row, 0, row_bytes);
    CHECK(!over);
    return STOKER_OK;
}

static const stoker_codec codec = { .struct_size = sizeof(stoker_codec),
                                    .name = "slow",
                                    .decode = decode };

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = COUNT,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { ROW_BYTES },
                                  .file_count = reads ? 1 : 0,
                                  .encoded_bytes_max = reads ? ROW_BYTES : 0 };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    (void)error;
    CHECK(!over);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .extent = { .offset = ids[i], .bytes = reads ? ROW_BYTES : 0 },
                                .codec = &codec };
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    (void)self;
    (void)file;
    *out = (stoker_file){ .path = "nowhere", .fd = -1 };
    return STOKER_OK;
}

static void close_set(void *self)
{
    (void)self;
    set_closed++;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "callbacks",
                                        .describe = describe,
                                        .locate = locate,
                                        .file = file_of,
                                        .destroy = close_set };

struct ring {
    stoker_read *reads[STOKER_READ_DEPTH_MAX];
    uint32_t count;
};

static int open_ring(void *self, void **ring, const stoker_reader_setup *setup, stoker_error *error)
{
    (void)self;
    (void)setup;
    (void)error;
    *ring = calloc(1, sizeof(struct ring));
    return *ring == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static int submit(void *self, stoker_read *const *asked, uint32_t count)
{
    struct ring *ring = self;
    note_call();
    for (uint32_t i = 0; i < count; i++)
        ring->reads[ring->count++] = asked[i];
    return STOKER_OK;
}

static int reap(void *self, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct ring *ring = self;
    uint32_t count = 0;
    (void)wait_ns;
    note_call();
    sleep_ms(pause_ms);
    for (; ring->count > 0 && count < max; count++) {
        done[count] = ring->reads[--ring->count];
        memset(done[count]->buffer, 0, done[count]->bytes);
        done[count]->result = (int32_t)done[count]->bytes;
    }
    CHECK(!over);
    return (int)count;
}

static int close_ring(void *ring, int64_t wait_ns)
{
    (void)wait_ns;
    note_call();
    free(ring);
    return STOKER_OK;
}

static const stoker_reader slow = { .struct_size = sizeof(stoker_reader),
                                    .name = "slow",
                                    .open = open_ring,
                                    .submit = submit,
                                    .reap = reap,
                                    .close = close_ring };

/* ---- */

/* Destroy a loader that is in the middle of its work, in calls of `ms` each. How long that took. */
static uint64_t destroy_while_busy(int32_t workers, int32_t ms, uint32_t calls_before)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    over = false;
    pause_ms = ms;
    const uint32_t before = calls, closed_before = set_closed;
    CHECK(stoker_dataset_create(&dataset, &ops, NULL, NULL) == STOKER_OK);
    options.num_workers = workers;
    options.batch_size = 512;
    options.prefetch_batches = 2;
    options.cache = STOKER_CACHE_NONE;
    options.reader = reads ? &slow : NULL;
    CHECK(stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK);
    while (calls < before + calls_before)
        sleep_ms(1);
    const uint64_t start_ns = stk_now_ns();
    stoker_loader_destroy(&loader);
    const uint64_t spent_ns = stk_now_ns() - start_ns;
    stoker_dataset_close(&dataset);
    over = true;
    CHECK(set_closed == closed_before + 1);
    return spent_ns;
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    uint32_t rounds = 0;
    for (; rounds < 20 && stk_time_left(start_ns); rounds++)
        for (int32_t workers = 1; workers <= 4; workers++) {
            reads = (rounds + (uint32_t)workers) % 2 == 0;
            /* A span of rows takes 5 s. */
            CHECK(destroy_while_busy(workers, SLOW_MS, 3) < UINT64_C(3000000000));
        }
    sleep_ms(3 * SLOW_MS); /* a thread that was left would be heard of */
    reads = rounds % 2 == 0;
    (void)destroy_while_busy(1, LAST_MS, reads ? 2 : 1); /* longer than it waits for a device */
    reads = !reads;
    (void)destroy_while_busy(1, LAST_MS, reads ? 2 : 1);
    sleep_ms(3 * SLOW_MS);
    printf("%u rounds\n", rounds);
    return rounds >= 1 ? 0 : 1;
}
