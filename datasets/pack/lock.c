/* lock.c - see lock.h. */
#include "datasets/pack/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "datasets/pack/output.h"
#include "loader/base/output_file.h"

/* ---- the process that holds a lock ---- */

/* One line of /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 fd:01:131073 0 EOF". Returns the process
 * if it is a lock on this file, else 0. */
static long holder_in_line(const char *line, const struct stat *file)
{
    long process = 0;
    unsigned high = 0;
    unsigned low = 0;
    uint64_t inode = 0;
    if (sscanf(line, "%*d: FLOCK %*s WRITE %ld %x:%x:%" SCNu64, &process, &high, &low, &inode) != 4)
        return 0;
    return inode == file->st_ino && makedev(high, low) == file->st_dev ? process : 0;
}

/* Returns 0 if the process is unknown: outside of this container, or the file system has several
 * device numbers. */
static long holder_of(int fd)
{
    char line[256];
    struct stat file;
    long process = 0;
    FILE *locks = fstat(fd, &file) == 0 ? fopen("/proc/locks", "re") : NULL;
    while (locks != NULL && process <= 0 && fgets(line, sizeof(line), locks) != NULL)
        process = holder_in_line(line, &file);
    if (locks != NULL)
        (void)fclose(locks);
    return process > 0 ? process : 0;
}

static bool lock(int fd, const char *path, int how, struct pack_failure *failure)
{
    if (flock(fd, how | LOCK_NB) == 0)
        return true;
    if (errno != EWOULDBLOCK)
        return pack_fail(failure, path, errno, "it cannot be locked");
    const long process = holder_of(fd);
    if (process == 0)
        return pack_fail(failure, path, 0, "another stoker-pack is packing into it");
    return pack_fail(failure, path, 0, "another stoker-pack, process %ld, is packing into it",
                     process);
}

/* ---- folders and files ---- */

int pack_lock_folder(const char *path, bool shared, struct pack_failure *failure)
{
    struct pack_failure ignored;
    const bool made = mkdir(path, 0755) == 0;
    if (!made && errno != EEXIST) {
        (void)pack_fail(failure, path, errno, "it could not be made");
        return -1;
    }
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        (void)pack_fail(failure, path, errno, "opening");
        return -1;
    }
    /* An existing folder may be unsynced, from a packer that was killed. */
    const bool durable = pack_sync_parent(path, made ? failure : &ignored) || !made;
    if (durable && lock(fd, path, shared ? LOCK_SH : LOCK_EX, failure))
        return fd;
    close(fd);
    return -1;
}

/* Returns true if the descriptor's file still has this name: the packer that held the lock may have
 * given it another since it was opened. */
static bool has_name(int fd, const char *path)
{
    struct stat file;
    struct stat named;
    return fstat(fd, &file) == 0 && lstat(path, &named) == 0 && file.st_ino == named.st_ino &&
           file.st_dev == named.st_dev;
}

int pack_lock_file(const char *path, const char *target, struct pack_failure *failure)
{
    for (;;) {
        const int fd = stk_output_create(path, O_WRONLY | O_NONBLOCK, 0644);
        if (fd < 0) {
            (void)pack_fail(failure, path, errno, "it could not be made");
            return -1;
        }
        const bool locked = lock(fd, target, LOCK_EX, failure);
        if (locked && has_name(fd, path))
            return fd;
        close(fd);
        if (!locked)
            return -1;
    }
}

/* ---- claims among the ranks of one packing ---- */

int pack_claim(const char *path, bool *taken, struct pack_failure *failure)
{
    *taken = false;
    for (;;) {
        const int fd = stk_output_create(path, O_RDWR | O_NONBLOCK, 0644);
        if (fd < 0) {
            (void)pack_fail(failure, path, errno, "it could not be made");
            return -1;
        }
        const int os_errno = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (os_errno == 0 && has_name(fd, path))
            return fd;
        close(fd);
        *taken = os_errno == EWOULDBLOCK;
        if (*taken)
            return -1;
        if (os_errno != 0) {
            (void)pack_fail(failure, path, os_errno, "it cannot be locked");
            return -1;
        }
    }
}

void pack_claim_end(int fd, const char *path)
{
    (void)unlink(
        path); /* while it is locked: a claim that waits for this one finds that its file has no name */
    close(fd);
}
