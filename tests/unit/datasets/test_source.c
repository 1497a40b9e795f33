/* test_source.c - files that samples are read from: opened with care, and left as they were. */
#include <fcntl.h>
#include <stoker/stoker.h>
#include <sys/stat.h>

#include "datasets/source.h"
#include "support/leaks.h"

#define DAY_S 86400

/* Last read a day before it was written: the next read marks it on most file systems. */
static void grow_old(int fd)
{
    const struct timespec times[2] = { { .tv_sec = DAY_S }, { .tv_sec = 2 * DAY_S } };
    cr_assert_eq(futimens(fd, times), 0);
}

static long read_at_s(int fd)
{
    struct stat status;
    cr_assert_eq(fstat(fd, &status), 0);
    return (long)status.st_atim.tv_sec;
}

static void read_source(const char *path, bool *unmarked)
{
    struct stk_source source;
    stoker_error error;
    char byte = 0;
    cr_assert_eq(stk_source_open(&source, &stk_storage_local, path, &error), STOKER_OK);
    cr_assert_eq(stk_source_read(&source, &byte, 1, 0, &error), STOKER_OK);
    cr_assert_eq(byte, 'x');
    const int flags = fcntl(source.fd, F_GETFL);
    cr_assert_eq(flags & O_NONBLOCK, 0, "io_uring would answer EAGAIN");
    *unmarked = (flags & O_NOATIME) != 0;
    stk_source_close(&source);
}

CleanTest(source, reading_leaves_no_mark_on_our_own_file)
{
    bool unmarked = false;
    char path[] = "/tmp/stoker-source-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "x", 1), 1);
    grow_old(fd);
    read_source(path, &unmarked);
    cr_expect(unmarked);
    cr_expect_eq(read_at_s(fd), DAY_S);
    unlink(path);
    close(fd);
}

CleanTest(source, a_file_of_somebody_else_is_read_like_any)
{
    if (geteuid() != 0)
        cr_skip_test("NOT TESTED: only root can become somebody else");
    bool unmarked = true;
    char path[] = "/tmp/stoker-source-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "x", 1), 1);
    cr_assert_eq(fchmod(fd, 0644), 0);
    cr_assert_eq(seteuid(65534), 0);
    read_source(path, &unmarked);
    cr_assert_eq(seteuid(0), 0);
    cr_expect_not(unmarked, "the kernel does not allow that");
    unlink(path);
    close(fd);
}

/* By size, or by the time alone. */
CleanTest(source, a_file_written_to_meanwhile_is_reported)
{
    char path[] = "/tmp/stoker-source-XXXXXX";
    struct stk_source source;
    stoker_error error;
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    for (int grows = 0; grows < 2; grows++) {
        cr_assert_eq(pwrite(fd, "x", 1, 0), 1);
        grow_old(fd);
        cr_assert_eq(stk_source_open(&source, &stk_storage_local, path, &error), STOKER_OK);
        cr_assert_eq(stk_source_check(&source, &error), STOKER_OK);
        cr_assert_eq(pwrite(fd, "y", 1, grows), 1);
        if (grows == 1)
            grow_old(fd); /* with the time set back, the size still differs */
        cr_assert_eq(stk_source_check(&source, &error), STOKER_ECHANGED);
        cr_assert_str_eq(error.path, path);
        stk_source_close(&source);
    }
    unlink(path);
    close(fd);
}
