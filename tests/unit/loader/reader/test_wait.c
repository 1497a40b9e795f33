/* test_wait.c - a read that never ends blocks its caller no longer than the timeout.
 *
 * An empty pipe is the file that never delivers: the kernel holds the read until a
 * byte is written. Needs io_uring; without it there is nothing that could wait.
 */
#include <signal.h>
#include <sys/time.h>

#include "loader/base/clock.h"
#include "loader/reader/readers.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"

enum { MILLISECOND_NS = 1000000 };

static const stoker_reader *const uring = &stk_reader_uring;

struct bench {
    int ends[2]; /* the pipe: read, write */
    stoker_file files[1];
    void *ring;
    uint8_t bytes[8][4];
    stoker_read reads[8];
    stoker_read *pointers[8];
};

static void bench_open(struct bench *bench)
{
    if (!stk_test_reader_works(uring))
        cr_skip_test("no io_uring here");
    memset(bench, 0, sizeof(*bench));
    cr_assert_eq(pipe(bench->ends), 0);
    bench->files[0] = (stoker_file){ .path = "pipe", .fd = bench->ends[0] };
    const stoker_reader_setup setup = { .files = bench->files, .file_count = 1, .depth = 8 };
    cr_assert_eq(uring->open(uring->self, &bench->ring, &setup, NULL), 0);
    for (uint32_t i = 0; i < 8; i++) {
        bench->reads[i] = (stoker_read){ .buffer = bench->bytes[i], .bytes = 4, .tag = i };
        bench->pointers[i] = &bench->reads[i];
    }
}

static void bench_close(struct bench *bench)
{
    cr_assert_eq(uring->close(bench->ring, 1000 * (int64_t)MILLISECOND_NS), 0);
    close(bench->ends[0]);
    close(bench->ends[1]);
}

CleanTest(reader_wait, a_reap_comes_back_in_the_time_given)
{
    struct bench bench;
    stoker_read *done[8];
    bench_open(&bench);
    cr_assert_eq(uring->reap(bench.ring, done, 8, -1), 0); /* nothing to wait for */
    cr_assert_eq(uring->submit(bench.ring, bench.pointers, 3), 0);
    static const int64_t waits_ns[] = { 0, 1, 20 * MILLISECOND_NS };
    for (int i = 0; i < 3; i++) {
        const uint64_t start_ns = stk_now_ns();
        cr_assert_eq(uring->reap(bench.ring, done, 8, waits_ns[i]), 0);
        const uint64_t spent_ns = stk_now_ns() - start_ns;
        cr_assert_geq(spent_ns, (uint64_t)waits_ns[i]);
        cr_assert_lt(spent_ns, (uint64_t)waits_ns[i] + 2000U * MILLISECOND_NS);
    }
    for (char byte = 'a'; byte < 'd'; byte++) {
        cr_assert_eq(write(bench.ends[1], &byte, 1), 1);
        cr_assert_eq(uring->reap(bench.ring, done, 8, -1), 1);
        cr_assert_eq(done[0]->result, 1);
        cr_assert_eq(*(char *)done[0]->buffer, byte);
    }
    bench_close(&bench);
}

/* With wait_ns = 0 too, what is done is found: the kernel posts it only to this thread. */
CleanTest(reader_wait, looking_finds_what_ended_meanwhile)
{
    struct bench bench;
    stoker_read *done[8];
    bench_open(&bench);
    cr_assert_eq(uring->submit(bench.ring, bench.pointers, 8), 0);
    for (int i = 0; i < 8; i++) {
        cr_assert_eq(uring->reap(bench.ring, done, 8, 0), 0);
        cr_assert_eq(write(bench.ends[1], "xyz", 3), 3);
        int got = 0;
        for (const uint64_t start_ns = stk_now_ns();
             got == 0 && stk_now_ns() - start_ns < 2000U * MILLISECOND_NS;)
            got = uring->reap(bench.ring, done, 8, 0);
        cr_assert_eq(got, 1);
        cr_assert_eq(done[0]->result, 3);
    }
    bench_close(&bench);
}

static void on_alarm(int number)
{
    (void)number; /* only to interrupt */
}

CleanTest(reader_wait, signals_neither_end_nor_prolong_a_wait)
{
    struct bench bench;
    stoker_read *done[8];
    bench_open(&bench);
    cr_assert_eq(uring->submit(bench.ring, bench.pointers, 1), 0);
    const struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART */
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    const struct itimerval storm = { .it_interval = { 0, 500 }, .it_value = { 0, 500 } };
    cr_assert_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
    const uint64_t start_ns = stk_now_ns();
    cr_assert_eq(uring->reap(bench.ring, done, 8, 50 * MILLISECOND_NS), 0);
    const uint64_t spent_ns = stk_now_ns() - start_ns;
    const struct itimerval calm = { 0 };
    cr_assert_eq(setitimer(ITIMER_REAL, &calm, NULL), 0);
    cr_assert_geq(spent_ns, 50U * MILLISECOND_NS);
    cr_assert_lt(spent_ns, 2000U * MILLISECOND_NS);
    cr_assert_eq(write(bench.ends[1], "x", 1), 1);
    bench_close(&bench);
}

Test(reader_wait, close_is_busy_in_the_time_given)
{
    static struct bench bench; /* its ring stays reachable: leaked by contract, not by mistake */
    bench_open(&bench);
    cr_assert_eq(uring->submit(bench.ring, bench.pointers, 2), 0);
    const uint64_t start_ns = stk_now_ns();
    cr_assert_eq(uring->close(bench.ring, 30 * MILLISECOND_NS), STOKER_BUSY);
    const uint64_t spent_ns = stk_now_ns() - start_ns;
    cr_assert_geq(spent_ns, 30U * MILLISECOND_NS);
    cr_assert_lt(spent_ns, 2000U * MILLISECOND_NS);
    stk_test_check_lost();
}

CleanTest(reader_wait, close_waits_for_reads_that_end)
{
    struct bench bench;
    bench_open(&bench);
    cr_assert_eq(uring->submit(bench.ring, bench.pointers, 5), 0);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(write(bench.ends[1], "wxyz", 4), 4);
    bench_close(&bench);
    for (int i = 0; i < 5; i++)
        cr_assert_arr_eq(bench.bytes[i], "wxyz", 4); /* the buffers are the caller's again */
}
