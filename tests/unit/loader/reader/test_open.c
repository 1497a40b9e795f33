/* test_open.c - rings that cannot be created, or only in part, fail cleanly or do without.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "loader/reader/readers.h"
#include "support/files/reader_file.h"
#include "support/runs/registered_buffers.h"
#include "support/seccomp.h"
#include "support/sweep.h"

enum { FILE_BYTES = 50007, PIECE_BYTES = 4096, WAIT_NS = 2000000000 };

static const stoker_reader *const readers[] = { &stk_reader_uring, &stk_reader_pread,
                                                &stk_reader_null };
enum { READERS = sizeof(readers) / sizeof(readers[0]) };

CleanTest(reader_open, each_failed_allocation_leaves_nothing)
{
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
    static uint8_t scratch[65536];
    const stoker_reader_setup setup = { .files = files,
                                        .file_count = 1,
                                        .directory = AT_FDCWD,
                                        .depth = 16,
                                        .scratch = scratch,
                                        .scratch_bytes = sizeof(scratch) };
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        void *ring = NULL;
        const int64_t live_before = stk_fault_live_bytes();
        struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
        while (stk_sweep_next(&sweep)) {
            cr_assert_null(ring);
            sweep.rc = readers[n]->open(readers[n]->self, &ring, &setup, &sweep.error);
        }
        cr_assert_geq(sweep.failed, 1);
        cr_assert_eq(readers[n]->close(ring, WAIT_NS), 0);
        cr_assert_eq(stk_fault_live_bytes(), live_before);
    }
    fclose(file);
}

CleanTest(reader_open, a_setup_out_of_range_is_refused)
{
    const stoker_reader_setup bad[] = {
        { .depth = 0 }, { .depth = 1025 }, { .depth = UINT32_MAX }, { .depth = 1, .file_count = 1 }
    };
    for (size_t n = 0; n < READERS; n++) {
        void *ring = NULL;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            stoker_error error = { 0 };
            cr_assert_eq(readers[n]->open(readers[n]->self, &ring, &bad[i], &error), STOKER_EINVAL);
            cr_assert_eq(error.code, STOKER_EINVAL);
        }
        cr_assert_eq(readers[n]->open(readers[n]->self, &ring, NULL, NULL), STOKER_EINVAL);
        cr_assert_null(ring);
    }
}

/* Read all of the file by pieces into a buffer; whether every byte was right. */
static bool reads_into(const stoker_reader *reader, const stoker_reader_setup *setup, void *buffer)
{
    void *ring = NULL;
    if (reader->open(reader->self, &ring, setup, NULL) != 0)
        return false;
    bool right = true;
    for (uint64_t offset = 0; offset < FILE_BYTES; offset += PIECE_BYTES) {
        stoker_read read = { .buffer = buffer, .offset = offset, .bytes = PIECE_BYTES };
        stoker_read *pointer = &read;
        if (reader->submit(ring, &pointer, 1) != 0 || reader->reap(ring, &pointer, 1, WAIT_NS) != 1)
            return false;
        right = right && read.result == stk_test_expected(FILE_BYTES, offset, PIECE_BYTES) &&
                stk_test_bytes_match(read.buffer, offset, read.result);
    }
    return reader->close(ring, WAIT_NS) == 0 && right;
}

static bool reads_right(const stoker_reader *reader, const stoker_reader_setup *setup)
{
    return reads_into(reader, setup, setup->scratch);
}

/* In a child that may lock `locked_bytes` and is the only process of its user
 * process, since the kernel counts per user. 0 = right, 1 = wrong, 2 = refused for
 * lack of memory, 3 = cannot be tried. */
static int read_unprivileged(const stoker_reader_setup *setup, rlim_t locked_bytes)
{
    const struct rlimit limit = { locked_bytes, locked_bytes };
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return 3;
    if (geteuid() == 0 && setuid(40000 + (uid_t)getpid() % 20000) != 0)
        return 3;
    stoker_error error = { 0 };
    void *ring = NULL;
    const int rc = stk_reader_uring.open(NULL, &ring, setup, &error);
    if (rc == STOKER_EREADER && error.os_errno == ENOMEM)
        return 2;
    if (rc != 0 || stk_reader_uring.close(ring, 0) != 0)
        return 1;
    return reads_right(&stk_reader_uring, setup) ? 0 : 1;
}

static int in_child(const stoker_reader_setup *setup, rlim_t locked_bytes)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(read_unprivileged(setup, locked_bytes));
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The ring alone fits the first limit, not the scratch memory; with none at all there
 * is a ring on some kernels and a refusal in words on others. Once through the page
 * cache, once directly where the file system can. */
CleanTest(reader_open, works_with_little_locked_memory)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const size_t scratch_bytes = (size_t)1 << 20;
    void *scratch =
        mmap(NULL, scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(scratch, MAP_FAILED);
    for (int direct = 0; direct <= 1; direct++) {
        if (direct == 1 && fcntl(fileno(file), F_SETFL, O_DIRECT) != 0)
            break;
        const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
        const stoker_reader_setup setup = { .files = files,
                                            .file_count = 1,
                                            .directory = AT_FDCWD,
                                            .depth = 8,
                                            .scratch = scratch,
                                            .scratch_bytes = scratch_bytes };
        cr_assert(reads_right(&stk_reader_uring, &setup)); /* with it, if this is root */
        const int little = in_child(&setup, 256 * 1024);
        cr_assert(little == 0 || little == 3, "child: %d", little);
        const int none = in_child(&setup, 0);
        cr_assert_neq(none, 1);
    }
    munmap(scratch, scratch_bytes);
    fclose(file);
}

static int buffers_of(const stoker_reader_setup *setup)
{
    void *ring = NULL;
    stoker_error error;
    cr_assert_eq(stk_reader_uring.open(NULL, &ring, setup, &error), 0);
    const int buffers = stk_test_registered_buffers();
    cr_assert_eq(stk_reader_uring.close(ring, WAIT_NS), 0);
    return buffers;
}

/* Scratch of the ring's own and slots that all rings share; where slots are too much, scratch
 * alone. */
CleanTest(reader_open, registers_scratch_and_slots)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
    static _Alignas(4096) uint8_t scratch[PIECE_BYTES], slots[4 * PIECE_BYTES];
    stoker_reader_setup setup = { .files = files,
                                  .file_count = 1,
                                  .directory = AT_FDCWD,
                                  .depth = 8,
                                  .slots = slots,
                                  .slots_bytes = sizeof(slots) };
    if (buffers_of(&setup) < 0)
        cr_skip_test("NOT TESTED: this kernel does not report it");
    cr_expect_eq(buffers_of(&setup), 1);
    cr_expect(reads_into(&stk_reader_uring, &setup, slots));
    setup.scratch = scratch;
    setup.scratch_bytes = sizeof(scratch);
    cr_expect_eq(buffers_of(&setup), 2);
    cr_expect(reads_into(&stk_reader_uring, &setup, slots), "the second buffer");
    setup.slots_bytes = SIZE_MAX / 2;
    cr_expect_eq(buffers_of(&setup), 1);
    cr_expect(reads_into(&stk_reader_uring, &setup, slots), "not registered");
    fclose(file);
}

/* Buffers (0) and files (2), and the limit on threads (19), are gains and not needs. */
CleanTest(reader_open, works_with_each_registration_refused)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
    static _Alignas(4096) uint8_t scratch[4 * PIECE_BYTES]; /* small enough to be registered */
    const stoker_reader_setup setup = { .files = files,
                                        .file_count = 1,
                                        .directory = AT_FDCWD,
                                        .depth = 8,
                                        .scratch = scratch,
                                        .scratch_bytes = sizeof(scratch) };
    cr_assert(reads_right(&stk_reader_uring, &setup));
    static const uint32_t operations[] = { 0, 2, 19 };
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (stk_seccomp_refuse_operation(SYS_io_uring_register, operations[i], ENOMEM) != 0)
            cr_skip_test("no seccomp filters here");
        cr_assert(reads_right(&stk_reader_uring, &setup), "operation %u", operations[i]);
    }
    fclose(file);
}

/* A kernel that registers nothing: no files, no buffers, no limit on threads. Only the
 * probe of operations goes through the same call, so this ring is refused, with its reason. */
CleanTest(reader_open, a_ring_that_registers_nothing_is_refused_with_words)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here: nothing to take away");
    if (stk_seccomp_refuse(SYS_io_uring_register, EPERM) != 0)
        cr_skip_test("no seccomp filters here");
    const stoker_reader_setup setup = { .depth = 4 };
    stoker_error error = { 0 };
    void *ring = NULL;
    cr_assert_eq(stk_reader_uring.open(NULL, &ring, &setup, &error), STOKER_EREADER);
    cr_assert_not_null(strstr(error.message, "io_uring"));
    cr_assert_null(ring);
}

/* Descriptors run out: said, and gone when there are some again. */
CleanTest(reader_open, without_descriptors_a_ring_is_refused)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = { 3, before.rlim_max };
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    const stoker_reader_setup setup = { .depth = 4 };
    stoker_error error = { 0 };
    void *ring = NULL;
    const int rc = stk_reader_uring.open(NULL, &ring, &setup, &error);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_assert_eq(rc, STOKER_EREADER);
    cr_assert_eq(error.os_errno, EMFILE);
    cr_assert_null(ring);
    cr_assert(stk_test_reader_works(&stk_reader_uring));
}
