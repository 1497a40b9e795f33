/* pack_calls.c - a library to preload: notes what stoker-pack asks of the disk, and kills it there.
 *
 *   STOKER_TEST_CALLS=FILE    append a line for each call that makes a name or waits for the disk:
 *       mkdir PATH | sync PATH SUM | syncfs PATH | rename FROM TO SUM | unlink PATH
 *   STOKER_TEST_KILL=N        SIGKILL to itself instead of call number N (0, 1, ...)
 *
 * SUM is of the bytes that the file holds at that moment as any other process sees them (0 for a
 * folder): if it is the same at its last sync and at its rename, all bytes were waited for.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static void note(const char *call, const char *path, const char *to, bool summed)
{
    const char *kill_at = getenv("STOKER_TEST_KILL");
    const char *file = getenv("STOKER_TEST_CALLS");
    const long number = call_count++;
    FILE *calls = file == NULL ? NULL : fopen(file, "ae");
    if (kill_at != NULL && strtol(kill_at, NULL, 10) == number)
        (void)raise(SIGKILL);
    if (calls == NULL)
        return;
    (void)fprintf(calls, "%s %s%s%s", call, path, to == NULL ? "" : " ", to == NULL ? "" : to);
    if (summed)
        (void)fprintf(calls, " %016" PRIx64, sum_of(path));
    (void)fputc('\n', calls);
    (void)fclose(calls);
}

/* ---- the calls ------------------------------------------------------------------ */

__attribute__((visibility("default"))) int mkdir(const char *path, mode_t mode)
{
    note("mkdir", path, NULL, false);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    char path[PATH_MAX];
    note("sync", path_of(fd, path), NULL, true);
    return (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    char path[PATH_MAX];
    note("sync", path_of(fd, path), NULL, true);
    return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int syncfs(int fd)
{
    char path[PATH_MAX];
    note("syncfs", path_of(fd, path), NULL, false);
    return (int)syscall(SYS_syncfs, fd);
}

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    note("rename", from, to, true);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

__attribute__((visibility("default"))) int unlink(const char *path)
{
    note("unlink", path, NULL, false);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

__attribute__((visibility("default"))) int unlinkat(int folder, const char *name, int flags)
{
    note("unlink", name, NULL, false);
    return (int)syscall(SYS_unlinkat, folder, name, flags);
}
