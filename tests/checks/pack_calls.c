/* pack_calls.c - a library to preload: notes what stoker-pack asks of the disk, and stops it there.
 *
 *   STOKER_TEST_CALLS=FILE    append a line for each call that makes a name or waits for the disk:
 *       mkdir PATH | sync PATH SUM | syncfs PATH | rename FROM TO SUM | unlink PATH
 *   STOKER_TEST_KILL=N        SIGKILL to itself instead of call number N (0, 1, ...)
 *   STOKER_TEST_FAIL=N        it fails with EIO; writes to streams are counted, too
 *
 * SUM is of the bytes that the file holds at that moment as any other process sees them (0 for a
 * folder): if it is the same at its last sync and at its rename, all bytes were waited for.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long call_count; /* stoker-pack writes from one thread */

/* ---- what is noted -------------------------------------------------------------- */

static uint64_t sum_of(const char *path)
{
    uint64_t sum = 0xCBF29CE484222325U;
    uint8_t bytes[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got;
    if (fd < 0)
        return 0;
    bool any = false;
    while ((got = read(fd, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < got; i++, any = true)
            sum = (sum ^ bytes[i]) * 0x100000001B3U;
    close(fd);
    return any ? sum : 0;
}

static const char *path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t bytes = readlink(link, path, PATH_MAX - 1);
    path[bytes < 0 ? 0 : bytes] = '\0';
    return path;
}

static bool is(const char *variable, long number)
{
    const char *due = getenv(variable);
    return due != NULL && strtol(due, NULL, 10) == number;
}

/* True if the call is to fail. */
static bool falls_due(void)
{
    const long number = call_count++;
    if (is("STOKER_TEST_KILL", number))
        (void)raise(SIGKILL);
    errno = EIO;
    return is("STOKER_TEST_FAIL", number);
}

/* True if the call is to fail. */
static bool note(const char *call, const char *path, const char *to, bool summed)
{
    const char *file = getenv("STOKER_TEST_CALLS");
    if (falls_due())
        return true;
    FILE *calls = file == NULL ? NULL : fopen(file, "ae");
    if (calls == NULL)
        return false;
    (void)fprintf(calls, "%s %s%s%s", call, path, to == NULL ? "" : " ", to == NULL ? "" : to);
    if (summed)
        (void)fprintf(calls, " %016" PRIx64, sum_of(path));
    (void)fputc('\n', calls);
    (void)fclose(calls);
    return false;
}

/* ---- the calls ------------------------------------------------------------------ */

__attribute__((visibility("default"))) int mkdir(const char *path, mode_t mode)
{
    if (note("mkdir", path, NULL, false))
        return -1;
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    char path[PATH_MAX];
    if (note("sync", path_of(fd, path), NULL, true))
        return -1;
    return (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    char path[PATH_MAX];
    if (note("sync", path_of(fd, path), NULL, true))
        return -1;
    return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int syncfs(int fd)
{
    char path[PATH_MAX];
    if (note("syncfs", path_of(fd, path), NULL, false))
        return -1;
    return (int)syscall(SYS_syncfs, fd);
}

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    if (note("rename", from, to, true))
        return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

__attribute__((visibility("default"))) int unlink(const char *path)
{
    if (note("unlink", path, NULL, false))
        return -1;
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

__attribute__((visibility("default"))) int unlinkat(int folder, const char *name, int flags)
{
    if (note("unlink", name, NULL, false))
        return -1;
    return (int)syscall(SYS_unlinkat, folder, name, flags);
}

typedef size_t write_function(const void *, size_t, size_t, FILE *);

/* Numbered only if one is to fail, so that the other numbers do not depend on how much is
 * written. */
__attribute__((visibility("default"))) size_t fwrite(const void *bytes, size_t size, size_t count,
                                                     FILE *stream)
{
    write_function *next = NULL;
    const bool counts = getenv("STOKER_TEST_FAIL") != NULL && fileno(stream) > STDERR_FILENO;
    if (counts && falls_due())
        return 0;
    *(void **)&next = dlsym(RTLD_NEXT, "fwrite");
    return next(bytes, size, count, stream);
}

typedef int flush_function(FILE *);

__attribute__((visibility("default"))) int fflush(FILE *stream)
{
    flush_function *next = NULL;
    const bool counts =
        getenv("STOKER_TEST_FAIL") != NULL && stream != NULL && fileno(stream) > STDERR_FILENO;
    if (counts && falls_due())
        return EOF;
    *(void **)&next = dlsym(RTLD_NEXT, "fflush");
    return next(stream);
}
