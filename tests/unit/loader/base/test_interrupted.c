/* test_interrupted.c - calls that a signal interrupted are made again, and short ones are taken up
 * where they stopped.
 *
 *   the code under test ──▶ pread(), write(), openat2 ──▶ the script's next answer,
 *                           of this program               or what the kernel says
 *
 * No signal could be timed to arrive inside of a call, so the answers come by a script. Only the
 * thread that follows it is answered so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "datasets/source.h"
#include "loader/base/io/open_beneath.h"
#include "loader/base/io/pread.h"
#include "loader/base/io/write_all.h"
#include "support/files/dataset_files.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

enum { BYTES = 1000, AT = 24, ANSWERS_MAX = 8 };

/* ---- the script ------------------------------------------------------------------ */

/* Above 0: at most that number of bytes; 0: the end; below 0: -errno. After the last one the kernel
 * answers. */
struct script {
    ssize_t answers[ANSWERS_MAX];
    uint32_t count, given;
    uint32_t repeats; /* repeats of the first answer before the others */
    uint32_t calls;   /* those that the kernel answered, too */
    bool on;
};

static _Thread_local struct script script;

#define FOLLOW(...)                                                                                \
    (script = (struct script){ .answers = { __VA_ARGS__ },                                         \
                               .count = sizeof((ssize_t[]){ __VA_ARGS__ }) / sizeof(ssize_t),      \
                               .on = true })

/* The calls there were; from now on the kernel answers. */
static uint32_t put_away(void)
{
    script.on = false;
    return script.calls;
}

/* Returns true if the call is answered by *answer: 0, or -1 with errno. If not, up to *bytes are
 * for the kernel. */
static bool scripted(size_t *bytes, ssize_t *answer)
{
    if (!script.on)
        return false;
    script.calls++;
    if (script.given == script.count)
        return false;
    const ssize_t next = script.answers[script.given];
    if (script.repeats > 0)
        script.repeats--;
    else
        script.given++;
    if (next > 0 && (size_t)next < *bytes)
        *bytes = (size_t)next;
    if (next > 0)
        return false;
    *answer = next == 0 ? 0 : -1;
    if (next < 0)
        errno = (int)-next;
    return true;
}

/* Found before libc's, and built on calls that no script is for. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    ssize_t answer;
    struct iovec piece = { .iov_base = to, .iov_len = bytes };
    return scripted(&piece.iov_len, &answer) ? answer : preadv(fd, &piece, 1, offset);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    ssize_t answer;
    struct iovec piece = { .iov_base = (void *)(uintptr_t)from, .iov_len = bytes };
    return scripted(&piece.iov_len, &answer) ? answer : writev(fd, &piece, 1);
}

typedef long (*call_fn)(long number, ...);

/* openat2 has no function in libc. Without AddressSanitizer, for not all calls have six
 * arguments. */
__attribute__((no_sanitize_address)) long syscall(long number, ...)
{
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    ssize_t answer;
    size_t bytes = 0;
    if (number == SYS_openat2 && scripted(&bytes, &answer))
        return answer;
    call_fn call;
    *(void **)&call = dlsym(RTLD_NEXT, "syscall");
    return call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}

/* ---- a part of a file ------------------------------------------------------------ */

/* BYTES bytes from AT on of a file of which every byte is known, by the script. */
static int read_part(uint8_t *to, stoker_error *error)
{
    FILE *const file = stk_test_file(AT + BYTES);
    cr_assert_not_null(file);
    const int rc = stk_pread_all(fileno(file), to, BYTES, stk_at("known", AT), error);
    fclose(file);
    return rc;
}

CleanTest(interrupted, a_read_is_made_again)
{
    uint8_t bytes[BYTES];
    FOLLOW(-EINTR, -EINTR, 300, -EINTR, 1, -EINTR);
    const int rc = read_part(bytes, NULL);
    cr_assert_eq(put_away(), 7); /* and the rest at once */
    cr_assert_eq(rc, STOKER_OK);
    cr_assert(stk_test_bytes_match(bytes, AT, BYTES));
}

static void expect_error(int code, uint64_t offset, int os_errno)
{
    uint8_t bytes[BYTES];
    stoker_error error = { .code = 0 };
    const int rc = read_part(bytes, &error);
    cr_assert_eq(put_away(), 3);
    cr_assert_eq(rc, code);
    cr_assert_eq(error.code, code);
    cr_assert_eq(error.offset, offset);
    cr_assert_eq(error.os_errno, os_errno);
    cr_assert(stk_test_bytes_match(bytes, AT, (int32_t)(offset - AT)));
    stk_test_check_leaks();
}

Test(interrupted, a_read_that_failed_is_not)
{
    FOLLOW(-EINTR, 10, -EIO);
    expect_error(STOKER_EIO, AT + 10, EIO);
}

Test(interrupted, an_end_of_file_is_reported_at_its_offset)
{
    FOLLOW(400, -EINTR, 0);
    expect_error(STOKER_ETRUNCATED, AT + 400, 0);
}

/* ---- a file by name -------------------------------------------------------------- */

struct known {
    struct stk_directory directory;
    int fd;
};

static struct known make_known(void)
{
    struct known known = { .directory = stk_directory_make() };
    uint8_t bytes[BYTES];
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = stk_test_byte(i);
    stk_file_write(&known.directory, "known", bytes, BYTES);
    known.fd = open(known.directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(known.fd, 0);
    return known;
}

static void remove_known(const struct known *known)
{
    close(known->fd);
    stk_directory_remove(&known->directory);
    stk_test_check_leaks();
}

Test(interrupted, a_whole_file_is_read_on)
{
    uint8_t bytes[BYTES + 1];
    const struct known known = make_known();
    FOLLOW(-EINTR, 300, -EINTR);
    const ssize_t got = stk_read_all_beneath(known.fd, "known", bytes, sizeof(bytes), 0);
    cr_assert_eq(put_away(), 5); /* the rest, and the end behind it */
    cr_assert_eq(got, BYTES);
    cr_assert(stk_test_bytes_match(bytes, 0, BYTES));
    remove_known(&known);
}

/* EAGAIN: something was renamed meanwhile. */
Test(interrupted, an_open_that_was_not_decided_is_made_again)
{
    const struct known known = make_known();
    FOLLOW(-EAGAIN, -EAGAIN, -EAGAIN);
    const int fd = stk_open_beneath_to_read(known.fd, "known");
    cr_assert_eq(put_away(), 4);
    cr_assert_geq(fd, 0);
    close(fd);
    FOLLOW(-EAGAIN, -ENOENT);
    cr_assert_eq(stk_open_beneath_to_read(known.fd, "known"), -ENOENT);
    cr_assert_eq(put_away(), 2);
    remove_known(&known);
}

Test(interrupted, a_whole_file_that_cannot_be_read_says_why)
{
    uint8_t bytes[BYTES];
    const struct known known = make_known();
    FOLLOW(-EINTR, 300, -EIO);
    const ssize_t got = stk_read_all_beneath(known.fd, "known", bytes, BYTES, 0);
    cr_assert_eq(put_away(), 3);
    cr_assert_eq(got, -EIO);
    remove_known(&known);
}

/* ---- a loader -------------------------------------------------------------------- */

/* Of a built-in reader a blocking pread is the last resort, and the bytes come. */
CleanTest(interrupted, a_loader_reads_in_the_end_what_would_wait_for_ever)
{
    struct stk_file_set set;
    stoker_loader_options options =
        stk_small_options(.num_workers = 0, .epochs = 1, .batch_size = 1);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert(stk_file_set_make(&set, 1, 5, 5, 0));
    cr_assert_eq(setenv("STOKER_READER", "pread", 1), 0);
    stoker_loader *loader = loader_of(set.dataset, &options);
    FOLLOW(-EAGAIN, -EINTR, 7); /* by the reader, and then by the last resort */
    script.repeats = 64;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_geq(put_away(), 65 + 2);
    cr_assert_eq(batch.count, 1);
    cr_assert(stk_file_set_matches(&set, &batch));
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.read_retries, 65); /* bounded, no spinning */
    cr_assert_str_eq(stats.reader, "pread");
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&set);
}

/* ---- writing --------------------------------------------------------------------- */

CleanTest(interrupted, a_write_is_taken_up)
{
    uint8_t bytes[BYTES], found[BYTES];
    FILE *const file = tmpfile();
    cr_assert_not_null(file);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = stk_test_byte(i);
    FOLLOW(-EINTR, 1, 500, -EINTR, -EINTR);
    const bool written = stk_write_all(fileno(file), bytes, BYTES);
    cr_assert_eq(put_away(), 6);
    cr_assert(written);
    cr_assert_eq(pread(fileno(file), found, BYTES, 0), BYTES);
    cr_assert_arr_eq(found, bytes, BYTES);
    fclose(file);
}

CleanTest(interrupted, a_write_that_failed_is_not)
{
    const uint8_t bytes[BYTES] = { 0 };
    FILE *const file = tmpfile();
    cr_assert_not_null(file);
    FOLLOW(-EINTR, 10, -ENOSPC);
    const bool written = stk_write_all(fileno(file), bytes, BYTES);
    const int why = errno;
    cr_assert_eq(put_away(), 3);
    cr_assert_not(written);
    cr_assert_eq(why, ENOSPC);
    fclose(file);
}
