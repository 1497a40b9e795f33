/* test_failure.c - a ring whose system calls begin to fail ends in time, with a code.
 *
 * A seccomp filter takes io_uring_enter away from a ring that worked.
 */
#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/seccomp.h"

static const stoker_reader *const uring = &stk_reader_uring;

struct bench {
    int ends[2]; /* the pipe: read, write */
    stoker_file files[1];
    void *ring;
    uint8_t byte;
    stoker_read read;
    stoker_read *pointer;
};

/* A ring over a pipe that never delivers. */
static void bench_open(struct bench *bench)
{
    if (!stk_test_reader_works(uring))
        cr_skip_test("no io_uring here: nothing to take away");
    memset(bench, 0, sizeof(*bench));
    cr_assert_eq(pipe(bench->ends), 0);
    bench->files[0] = (stoker_file){ .path = "pipe", .fd = bench->ends[0] };
    const stoker_reader_setup setup = { .files = bench->files, .file_count = 1, .depth = 4 };
    cr_assert_eq(uring->open(uring->self, &bench->ring, &setup, NULL), 0);
    bench->read = (stoker_read){ .buffer = &bench->byte, .bytes = 1 };
    bench->pointer = &bench->read;
}

static void refuse_enter(int os_errno)
{
    if (stk_seccomp_refuse(SYS_io_uring_enter, os_errno) != 0)
        cr_skip_test("no seccomp filters here");
}

/* Passing errors are tried again, but not for ever. */
static void submit_fails(int os_errno, uint64_t at_least_ns)
{
    struct bench bench;
    const int64_t live_before = stk_fault_live_bytes();
    bench_open(&bench);
    refuse_enter(os_errno);
    const uint64_t start_ns = stk_now_ns();
    cr_assert_eq(uring->submit(bench.ring, &bench.pointer, 1), STOKER_EIO);
    const uint64_t spent_ns = stk_now_ns() - start_ns;
    cr_assert_geq(spent_ns, at_least_ns);
    cr_assert_lt(spent_ns, 5000000000U);
    cr_assert_lt(uring->submit(bench.ring, &bench.pointer, 1), 0);
    cr_assert_eq(uring->reap(bench.ring, &bench.pointer, 1, -1), STOKER_EIO);
    cr_assert_eq(uring->close(bench.ring, -1), 0); /* nothing was taken */
    cr_assert_eq(stk_fault_live_bytes(), live_before);
    stk_test_check_leaks();
}

Test(reader_failure, submit_gives_up_on_a_lasting_eagain)
{
    submit_fails(EAGAIN, 100000000);
}

Test(reader_failure, submit_gives_up_on_a_lasting_eintr)
{
    submit_fails(EINTR, 100000000);
}

Test(reader_failure, submit_gives_up_at_once_on_what_cannot_pass)
{
    submit_fails(EPERM, 0);
}

Test(reader_failure, reap_and_close_end_when_waiting_is_impossible)
{
    static const int errors[] = { EAGAIN, EPERM };
    static struct bench benches[2]; /* their rings stay reachable: leaked by contract */
    for (int i = 0; i < 2; i++) {
        bench_open(&benches[i]);
        cr_assert_eq(uring->submit(benches[i].ring, &benches[i].pointer, 1), 0);
    }
    for (int i = 0; i < 2; i++) {
        refuse_enter(errors[i]);
        cr_assert_eq(uring->reap(benches[i].ring, &benches[i].pointer, 1, -1), STOKER_EIO);
        cr_assert_eq(uring->reap(benches[i].ring, &benches[i].pointer, 1, 0), STOKER_EIO);
        cr_assert_eq(uring->close(benches[i].ring, -1), STOKER_BUSY); /* it is in flight */
    }
    stk_test_check_lost();
}

/* Waits that only ever answer EINTR still end at their time. */
Test(reader_failure, reap_ends_in_time_under_nothing_but_eintr)
{
    static struct bench bench;
    bench_open(&bench);
    cr_assert_eq(uring->submit(bench.ring, &bench.pointer, 1), 0);
    refuse_enter(EINTR);
    const uint64_t start_ns = stk_now_ns();
    cr_assert_eq(uring->reap(bench.ring, &bench.pointer, 1, 20000000), 0);
    cr_assert_eq(uring->close(bench.ring, 20000000), STOKER_BUSY);
    const uint64_t spent_ns = stk_now_ns() - start_ns;
    cr_assert_geq(spent_ns, 40000000U);
    cr_assert_lt(spent_ns, 1000000000U);
    stk_test_check_lost();
}

/* Without preadv2 (an old sandbox) pread reads as before. */
CleanTest(reader_failure, pread_does_without_preadv2)
{
    static const int errors[] = { EOPNOTSUPP, ENOSYS };
    FILE *file = stk_test_file(4096);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = 4096 } };
    const stoker_reader_setup setup = { .files = files, .file_count = 1, .depth = 2 };
    for (int i = 0; i < 2; i++) {
        if (stk_seccomp_refuse(SYS_preadv2, errors[i]) != 0)
            cr_skip_test("no seccomp filters here");
        void *ring = NULL;
        cr_assert_eq(stk_reader_pread.open(NULL, &ring, &setup, NULL), 0);
        for (uint64_t offset = 0; offset < 4096; offset += 64) {
            uint8_t bytes[2][32];
            stoker_read reads[2] = {
                { .buffer = bytes[0], .offset = offset, .bytes = 32 },
                { .buffer = bytes[1], .offset = offset + 32, .bytes = 32 },
            };
            stoker_read *pointers[2] = { &reads[0], &reads[1] };
            cr_assert_eq(stk_reader_pread.submit(ring, pointers, 2), 0);
            cr_assert_eq(stk_reader_pread.reap(ring, pointers, 2, -1), 2);
            for (int r = 0; r < 2; r++) {
                cr_assert_eq(reads[r].result, 32);
                cr_assert(stk_test_bytes_match(bytes[r], reads[r].offset, 32));
            }
        }
        cr_assert_eq(stk_reader_pread.close(ring, 0), 0);
    }
    fclose(file);
}
