/* test_overflow.c - a completion queue that really overflows loses no read and repeats none.
 *
 * The reader asks for a queue that holds all its requests. Here it gets one of four entries: this
 * program defines liburing's io_uring_queue_init_params(), which shrinks the ring and then calls
 * the real function.
 */
#include <dlfcn.h>

#include "loader/reader/readers.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"

#ifdef STOKER_HAVE_URING
#include "loader/reader/ring.h"

enum { FILE_BYTES = 1 << 16, DEPTH = 64, READ_BYTES_MAX = 16, STEPS = 1000000, RING_ENTRIES = 4 };

static bool shrinks;

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                               struct io_uring_params *params)
{
    static int (*real)(unsigned, struct io_uring *, struct io_uring_params *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "io_uring_queue_init_params");
    if (real == NULL)
        return -ENOSYS;
    const unsigned asked = params->cq_entries;
    if (shrinks) {
        entries = RING_ENTRIES;
        params->cq_entries = RING_ENTRIES;
    }
    const int rc = real(entries, ring, params);
    if (shrinks)
        params->cq_entries = asked; /* the reader checks what it got */
    return rc;
}

static struct {
    stoker_read reads[DEPTH];
    stoker_read *idle[DEPTH]; /* to be submitted next */
    bool in_flight[DEPTH];
    uint8_t bytes[DEPTH][READ_BYTES_MAX];
} flight;

static void draw(stoker_read *read, uint64_t number)
{
    const size_t at = (size_t)(read - flight.reads);
    const uint64_t bits = stk_mix64(number);
    cr_assert(!flight.in_flight[at], "read %zu is in flight twice", at);
    flight.in_flight[at] = true;
    memset(flight.bytes[at], 0, READ_BYTES_MAX);
    *read = (stoker_read){ .buffer = flight.bytes[at],
                           .offset = bits % (FILE_BYTES - READ_BYTES_MAX),
                           .bytes = 1 + (uint32_t)(bits >> 60),
                           .result = INT32_MIN,
                           .tag = (uint32_t)number };
}

static void check(const stoker_read *read)
{
    const size_t at = (size_t)(read - flight.reads);
    cr_assert(flight.in_flight[at], "read %zu came back twice", at);
    flight.in_flight[at] = false;
    cr_assert_eq(read->result, (int64_t)read->bytes, "read %u: %lld", read->tag,
                 (long long)read->result);
    cr_assert(stk_test_bytes_match(read->buffer, read->offset, read->result), "read %u", read->tag);
}

static bool overflowed(const void *reader_ring)
{
    const struct stk_ring *ring = reader_ring; /* the first member of the reader's own struct */
    return (__atomic_load_n(ring->io.sq.kflags, __ATOMIC_ACQUIRE) & IORING_SQ_CQ_OVERFLOW) != 0;
}

/* Submit and reap random numbers of reads. Returns the number of submits that overflowed the
 * queue. */
static uint32_t read_at_random(const stoker_reader *reader, void *ring)
{
    uint32_t idle = DEPTH;
    uint32_t overflows = 0;
    for (uint32_t i = 0; i < DEPTH; i++)
        flight.idle[i] = &flight.reads[i];
    for (uint64_t started = 0, finished = 0, turn = 0; finished < STEPS;) {
        const uint64_t bits = stk_mix64(turn++);
        uint32_t count = started < STEPS ? (uint32_t)(bits % (idle + 1)) : 0;
        for (uint32_t i = 0; i < count; i++)
            draw(flight.idle[idle - count + i], started++);
        if (count > 0) {
            cr_assert_eq(reader->submit(ring, flight.idle + idle - count, count), 0);
            idle -= count;
            overflows += overflowed(ring);
        }
        if (idle == DEPTH)
            continue;
        const uint32_t max = 1 + (uint32_t)((bits >> 32) % DEPTH);
        stoker_read *done[DEPTH];
        const int got = reader->reap(ring, done, max, 5 * INT64_C(1000000000));
        cr_assert_gt(got, 0, "%u in flight, none comes back", DEPTH - idle);
        for (int i = 0; i < got; i++) {
            check(done[i]);
            flight.idle[idle++] = done[i];
        }
        finished += (uint64_t)got;
    }
    cr_assert_eq(idle, DEPTH);
    return overflows;
}

static uint32_t overflows_of(bool small, bool any_thread)
{
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
    const stoker_reader_setup setup = { .files = files,
                                        .file_count = 1,
                                        .directory = AT_FDCWD,
                                        .depth = DEPTH,
                                        .any_thread = any_thread };
    void *ring = NULL;
    shrinks = small;
    cr_assert_eq(stk_reader_uring.open(NULL, &ring, &setup, NULL), 0);
    shrinks = false;
    const uint32_t overflows = read_at_random(&stk_reader_uring, ring);
    cr_assert_eq(stk_reader_uring.close(ring, 1000000000), 0);
    fclose(file);
    return overflows;
}

CleanTest(reader_overflow, a_queue_that_is_too_small_loses_no_read)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    if (dlsym(RTLD_NEXT, "io_uring_queue_init_params") == NULL)
        cr_skip_test("liburing is linked statically: its ring cannot be made smaller");
    for (int any_thread = 0; any_thread < 2; any_thread++)
        cr_assert_gt(overflows_of(true, any_thread == 1), 1000, "the queue did not overflow");
}

CleanTest(reader_overflow, the_queue_that_the_reader_asks_for_does_not_overflow)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    for (int any_thread = 0; any_thread < 2; any_thread++)
        cr_assert_eq(overflows_of(false, any_thread == 1), 0);
}
#else
Test(reader_overflow, needs_io_uring)
{
    cr_skip_test("built without liburing");
}
#endif
